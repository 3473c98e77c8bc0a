"""The network of a trained retriever (core.models.encoders.retriever).

Legend: B texts, L tokens, d model width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from core.models.encoders.base import base_tokenizer, load_base
from core.models.encoders.low_rank import adapt, differences, load_trained, merge
from core.models.encoders.retriever import RetrieverConfig, damaged, retriever_config


def pooled(states: Tensor, mask: Tensor, pooling: str) -> Tensor:
    """Pools states (B, L, d) to unit vectors (B, d): the first token's, or the mean over real tokens."""
    if pooling == "cls":
        return nn.functional.normalize(states[:, 0].float(), dim=-1)
    weight = mask.unsqueeze(-1).float()
    mean = (states.float() * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
    return nn.functional.normalize(mean, dim=-1)


class RetrieverNetwork(nn.Module):
    def __init__(self, encoder: Any, config: RetrieverConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        if config.rank:
            adapt(encoder, config.layers, config.rank)

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (B, d) of token ids (B, L)."""
        states = self.encoder(input_ids=input_ids, attention_mask=mask).last_hidden_state
        return pooled(states, mask, self.config.pooling)

    def trained(self) -> dict[str, Tensor]:
        """The weights that the base does not have, by name."""
        if self.config.rank:
            return differences(self)
        return {n: t for n, t in self.state_dict().items() if ".embeddings." not in n}

    def merged(self) -> Any:
        """The encoder for inference.  The network can't be trained any further."""
        merge(self.encoder, self.config.layers)
        return self.encoder.eval().requires_grad_(False)


def load_retriever(folder: Path) -> tuple[Any, RetrieverNetwork]:
    """(tokenizer, network).  Raises CheckpointError for a folder that is damaged or does not fit its base."""
    from safetensors import SafetensorError

    try:
        config = retriever_config(folder)
        tokenizer, network = base_tokenizer(config.base), RetrieverNetwork(load_base(config.base), config)
        load_trained(network, folder)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise damaged(folder, error) from None
    return tokenizer, network.eval()


def torch_ids(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """(token ids (B, L), mask (B, L)) of rows that differ in length."""
    ids = [torch.tensor(row, dtype=torch.long) for row in rows]
    masks = [torch.ones_like(row) for row in ids]
    return pad_sequence(ids, batch_first=True, padding_value=pad), pad_sequence(masks, batch_first=True)
