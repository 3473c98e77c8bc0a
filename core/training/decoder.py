"""Batches, loss and first weights of a decoder, for the trainings of the writer and of the language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from core.errors import InputError
from core.models.language import decoder
from core.models.loading.finding import named_folder
from core.training.data.chunks import grouped
from core.training.options import DecoderOptions

T = TypeVar("T")
E = TypeVar("E")


class DecoderTask(Generic[E]):
    def __init__(self, sources: Sequence[tuple[Sequence[E], float]], batch_tokens: int, missing: str) -> None:
        """`sources`: (examples, share) pairs; `missing`: the message of the InputError where none has an example."""
        self.sources, self.batch_tokens = [(list(examples), share) for examples, share in sources if examples], batch_tokens
        if not self.sources:
            raise InputError(missing)

    def in_batches(self, rows: Iterable[decoder.TokenRow], seed: int, chunk: int) -> list[list[decoder.TokenRow]]:
        """Rows of similar length together, batches in random order."""
        ordered = sorted(rows, key=lambda r: len(r[0]))
        return grouped(ordered, lambda group, r: len(r[0]) * (len(group) + 1) <= self.batch_tokens, f"{seed}-{chunk}-order")

    def batch(self, group: list[decoder.TokenRow]) -> decoder.DecoderRows:
        return decoder.collate(group)

    def loss(self, network: nn.Module, batch: decoder.DecoderRows, device: torch.device) -> Tensor:
        """The mean of -log p over the tokens that are learned."""
        logits, targets = network(batch.to(device))
        return nn.functional.cross_entropy(logits.float(), targets)


def start(kind: str, options: DecoderOptions, tokenizer: Callable[[str], T]) -> tuple[T, Any, Callable[..., Any]]:
    """(what `tokenizer` makes of the base's folder, network to train, function that saves it).  Raises InputError, CheckpointError."""
    save = partial(decoder.save_decoder, kind)
    if not options.init:
        return *decoder.new_decoder(decoder.DecoderConfig(options.base, options.rank, options.layers), tokenizer), save
    if (folder := named_folder(options.init)) is None:
        raise InputError(f"--init is '{options.init}', which is no folder of `train {kind}`")
    return *decoder.load_decoder(folder, kind, tokenizer), save
