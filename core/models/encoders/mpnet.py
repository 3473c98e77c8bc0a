"""MPNet's encoder (Song et al. 2020) without transformers' imports: BERT's layers plus a bias for relative positions.

The layers are those of core.models.encoders.bert; tests/models/encoders/test_mpnet.py compares the states with transformers' own.

Legend: B rows, L tokens a row, d model width, H heads.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from core.models.encoders.bert import Bert, Embedding
from core.models.loading.finding import WEIGHTS, read_config

FIRST_POSITION = 2  # of fairseq's embeddings: the padding index + 1
NO_TYPES = "embeddings.token_type_embeddings.weight"  # MPNet has none: they are zeros
MAX_DISTANCE = 128  # tokens; larger distances share a bucket
# beginnings of MPNet's names -> those of core.models.encoders.bert
_NAMES = {
    re.compile(r"attention\.attn\.q\."): "attention.self.query.",
    re.compile(r"attention\.attn\.k\."): "attention.self.key.",
    re.compile(r"attention\.attn\.v\."): "attention.self.value.",
    re.compile(r"attention\.attn\.o\."): "attention.output.dense.",
    re.compile(r"attention\.LayerNorm\."): "attention.output.LayerNorm.",
    re.compile(r"^encoder\.relative_attention_bias\."): "near.",
}


def buckets(length: int, count: int) -> Tensor:
    """(L, L) bucket of each (query, key), as in T5: half of `count` for each direction, half of those exact, the others logarithmic."""
    position = torch.arange(length)
    distance = position[:, None] - position[None, :]
    half = count // 2
    exact = half // 2
    steps = distance.abs()
    logarithmic = exact + (torch.log(steps.clamp(min=1) / exact) / math.log(MAX_DISTANCE / exact) * (half - exact)).long()
    return (distance < 0) * half + torch.where(steps < exact, steps, logarithmic.clamp(max=half - 1))


class MPNet(Bert):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__(config)
        self.near = Embedding(config.relative_attention_num_buckets, config.num_attention_heads)

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, L)
        attention_mask: Tensor | None = None,  # (B, L), 0 or False at padding, which is at the end
        token_type_ids: Tensor | None = None,  # ignored: MPNet has one type
        position_ids: Tensor | None = None,  # (B, L), from 0
        inputs_embeds: Tensor | None = None,  # (B, L, d), in place of `input_ids`
        **extra: Any,  # for the attention function
    ) -> SimpleNamespace:
        """`last_hidden_state`: (B, L, d)."""
        tokens: Any = input_ids if inputs_embeds is None else inputs_embeds
        if position_ids is None:
            position_ids = torch.arange(tokens.shape[1], device=tokens.device)
        packed = extra.get("packed")
        length = tokens.shape[1] if packed is None else max(packed.lengths, default=0)
        near = self.near(buckets(length, self.near.num_embeddings).to(tokens.device))  # (L, L, H)
        extra["position_bias"] = near.permute(2, 0, 1)[None]  # (1, H, L, L)
        return super().forward(input_ids, attention_mask, None, FIRST_POSITION + position_ids, inputs_embeds, **extra)


def _our_name(name: str) -> str:
    """Translates one of MPNet's weight names to core.models.encoders.bert's."""
    name = name.removeprefix("mpnet.")
    for theirs, ours in _NAMES.items():
        name = theirs.sub(ours, name)
    return name


def load_mpnet(folder: str | Path) -> MPNet:
    """The encoder in a folder in transformers' layout, in float32 and in eval mode; a pooler or a head is ignored.

    Raises CheckpointError, OSError, ValueError, KeyError, RuntimeError or SafetensorError for a damaged folder.
    """
    from safetensors import safe_open

    config = read_config(Path(folder))
    if config.get("model_type") != "mpnet":
        raise ValueError(f"the weights in {folder} are of a {config.get('model_type')} model, not of MPNet")
    network = MPNet(SimpleNamespace(**config | {"type_vocab_size": 1}))
    path = Path(folder) / WEIGHTS
    with safe_open(path, "pt") as file:
        theirs = {_our_name(name): name for name in file.keys()}  # noqa: SIM118  (it is no dict)
    expected = [name for name in network.state_dict() if name != NO_TYPES]
    if missing := [name for name in expected if name not in theirs]:
        raise ValueError(f"{path} lacks {len(missing)} weights, {missing[0]} for one")
    weights = {NO_TYPES: torch.zeros(1, config["hidden_size"])}
    for name in expected:
        with safe_open(path, "pt") as file:  # opened for each: an open file keeps everything read from it in memory
            weights[name] = file.get_tensor(theirs[name]).float().clone()
    network.load_state_dict(weights, assign=True)
    return network.eval()
