"""A pretrained decoder with low-rank updates, shared by the writer (core.models.language.writer) and the bundled language model
(core.models.language.bundled).

Network: SmolLM2-135M-Instruct (Allal et al. 2025) with low-rank updates (core.models.encoders.low_rank).  A row may have branches that read its head
and themselves: several targets of one prompt are learned at the price of one.

Legend: B rows, L tokens, T tokens that are learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from core.errors import CheckpointError
from core.models.encoders.base import base_folder, loading
from core.models.encoders.low_rank import adapt, differences, load_trained, merge
from core.models.loading.files import save_weights
from core.models.loading.finding import damaged, read_config
from core.models.loading.packaged import SMOLLM
from core.models.loading.pretrained import pretrained

IGNORED = -100
TokenRow = tuple[
    list[int], list[int], list[int], list[int]
]  # (ids, positions, branch of each token with 0 for the head, targets)
T = TypeVar("T")


@dataclass(frozen=True)
class DecoderConfig:
    """`rank` of the low-rank updates in the upper `layers` of 30 layers."""

    base: str = SMOLLM  # the packaged one, or a folder
    rank: int = 32
    layers: int = 22

    def __post_init__(self) -> None:
        if self.rank < 1 or self.layers < 1:
            raise ValueError(f"rank {self.rank} and layers {self.layers} must be at least 1")


@dataclass
class DecoderRows:
    """B training rows.  `mask` (B, 1, L, L) is True where a token attends; `targets` (B, L) has the next token, or IGNORED
    where none is learned."""

    ids: Tensor
    positions: Tensor
    mask: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> DecoderRows:
        return DecoderRows(*(t.to(device) for t in (self.ids, self.positions, self.mask, self.targets)))


def collate(rows: Sequence[TokenRow]) -> DecoderRows:
    """The tensors of rows, padded to the longest."""
    ids, positions, branches, targets = (
        pad_sequence([torch.tensor(r[k]) for r in rows], batch_first=True, padding_value=value)
        for k, value in enumerate((0, 0, -1, IGNORED))
    )
    length = ids.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    same = branches.unsqueeze(2) == branches.unsqueeze(1)  # (B, L, L)
    to_head = (branches == 0).unsqueeze(
        1
    )  # (B, 1, L): every branch reads the head, and a padding token too, so that no row of the softmax is empty
    return DecoderRows(ids, positions, (causal & (same | to_head)).unsqueeze(1), targets)


class DecoderNetwork(nn.Module):
    def __init__(self, decoder: Any, config: DecoderConfig) -> None:
        """`decoder`: a transformers model for causal language modelling."""
        super().__init__()
        self.decoder, self.config = decoder, config
        decoder.requires_grad_(False)
        adapt(decoder.model, config.layers, config.rank)

    def forward(self, rows: DecoderRows) -> tuple[Tensor, Tensor]:
        """(logits (T, vocabulary), targets (T,)) of the T tokens that are learned."""
        states = self.decoder.model(
            input_ids=rows.ids, attention_mask=rows.mask, position_ids=rows.positions, use_cache=False
        ).last_hidden_state  # (B, L, d)
        learned = rows.targets != IGNORED
        return self.decoder.lm_head(states[learned]), rows.targets[learned]

    def trained(self) -> dict[str, Tensor]:
        """The weights that the base does not have, by name."""
        return differences(self)

    def merge(self) -> None:
        """Merges the updates for inference.  The network can't be trained any further."""
        merge(self.decoder.model, self.config.layers)


def new_decoder(config: DecoderConfig, tokenizer: Callable[[str], T]) -> tuple[T, DecoderNetwork]:
    """The untrained base, and the result of `tokenizer` for its folder.  Raises CheckpointError for a base that is missing or
    damaged."""
    with loading(f"base model '{config.base}'"):
        folder = base_folder(config.base)
        decoder = pretrained("AutoModelForCausalLM", folder, dtype=torch.float32, use_safetensors=True)
        return tokenizer(folder), DecoderNetwork(decoder, config)


def save_decoder(kind: str, network: DecoderNetwork, folder: Path, about: dict[str, Any]) -> None:
    save_weights(network.trained(), folder, {"kind": kind, "config": asdict(network.config), "about": about})


def load_decoder(folder: Path, kind: str, tokenizer: Callable[[str], T]) -> tuple[T, DecoderNetwork]:
    """Loads a folder written by `save_decoder`, to continue training.  Raises CheckpointError for a folder that is damaged, of
    another kind, or doesn't fit its base."""
    stored = read_config(folder)
    if stored.get("kind") != kind:
        raise CheckpointError(f"{folder} does not hold a {kind} model; name a folder of `python -m core train {kind}`")
    try:
        loaded_tokenizer, network = new_decoder(DecoderConfig(**stored["config"]), tokenizer)
        load_trained(network, folder)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise damaged(folder, error) from None
    return loaded_tokenizer, network.eval()
