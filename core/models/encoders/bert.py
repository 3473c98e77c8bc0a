"""BERT's encoder (Devlin et al. 2019) with transformers' parameter names and numbers, and without its imports.

There is no dropout: on CPUs it costs a third of a training step.  `from transformers import BertModel` also imports torch's compiler and distributed
tensors, about half of the start-up import time, and the bundled base needs neither.  tests/models/encoders/test_bert.py compares the states with
transformers' own.  Only bare encoders with absolute positions are supported (`fits`); every other base is loaded by transformers.

Legend: B rows, L tokens a row, d model width, H heads, D width of a head.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import CheckpointError
from core.models.loading.finding import WEIGHTS, read_config

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": nn.functional.gelu, "relu": nn.functional.relu}
Attend = Callable[..., tuple[Tensor, Any]]  # the interface of transformers' attention functions


def fits(folder: str | Path, model_type: str = "bert") -> bool:
    """Whether `load_bert` (or `load_mpnet`, with kind "mpnet") can load a folder."""
    try:
        config = read_config(Path(folder))
    except CheckpointError:
        return False
    is_plain = config.get("position_embedding_type", "absolute") == "absolute" and not config.get("is_decoder")
    is_known = config.get("model_type") == model_type and config.get("hidden_act", "gelu") in ACTIVATIONS
    return is_plain and is_known and (Path(folder) / WEIGHTS).is_file()


def plain_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    position_bias: Tensor | None = None,  # (1, H, L, L)
    **_: Any,
) -> tuple[Tensor, None]:
    """torch's fused attention, (B, H, L, D) -> (B, L, H, D)."""
    if position_bias is not None:
        bias = position_bias.to(query.dtype)
        attention_mask = bias if attention_mask is None else bias.masked_fill(~attention_mask, torch.finfo(bias.dtype).min)
    out = nn.functional.scaled_dot_product_attention(query, key, value, attention_mask, scale=scaling)
    return out.transpose(1, 2), None


class Linear(nn.Linear):
    def reset_parameters(self) -> None:
        """Skips the random initialisation: weights are always loaded."""


class Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        """Skips the random initialisation: weights are always loaded."""


class Embeddings(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, words: Tensor, types: Tensor | None, positions: Tensor | None) -> Tensor:
        if positions is None:
            positions = torch.arange(words.shape[1], device=words.device)
        kind = self.token_type_embeddings.weight[0] if types is None else self.token_type_embeddings(types)
        out: Tensor = self.LayerNorm(words + kind + self.position_embeddings(positions))
        return out


class SelfAttention(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query = Linear(config.hidden_size, config.hidden_size)
        self.key = Linear(config.hidden_size, config.hidden_size)
        self.value = Linear(config.hidden_size, config.hidden_size)

    def forward(self, x: Tensor, mask: Tensor | None, attend: Attend, extra: dict[str, Any]) -> Tensor:
        def split(t: Tensor) -> Tensor:  # (B, L, d) -> (B, H, L, D)
            return t.view(*t.shape[:2], self.heads, -1).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        out, _ = attend(self, query, key, value, mask, scaling=query.shape[-1] ** -0.5, **extra)
        return out.reshape(x.shape)


class Output(nn.Module):
    """A projection, the residual connection and layer norm."""

    def __init__(self, inner: int, config: SimpleNamespace) -> None:
        super().__init__()
        self.dense = Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.dense(x) + residual)
        return out


class Layer(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(config), "output": Output(config.hidden_size, config)})
        self.intermediate = nn.ModuleDict({"dense": Linear(config.hidden_size, config.intermediate_size)})
        self.output = Output(config.intermediate_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]

    def forward(self, x: Tensor, mask: Tensor | None, attend: Attend, extra: dict[str, Any]) -> Tensor:
        x = self.attention["output"](self.attention["self"](x, mask, attend, extra), x)
        out: Tensor = self.output(self.activation(self.intermediate["dense"](x)), x)
        return out


class Layers(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Bert(nn.Module):
    """`attend`: the attention function of every layer, with the same interface as transformers'."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.attend: Attend = plain_attention
        self.embeddings = Embeddings(config)
        self.encoder = Layers(config)

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, L)
        attention_mask: Tensor | None = None,  # (B, L), 0 or False at padding
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,  # (B, L, d), in place of `input_ids`
        **extra: Any,  # for the attention function
    ) -> SimpleNamespace:
        """`last_hidden_state`: (B, L, d)."""
        words = self.embeddings.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        x = self.embeddings(words, token_type_ids, position_ids)  # (B, L, d)
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        for layer in self.encoder.layer:
            x = layer(x, mask, self.attend, extra)
        return SimpleNamespace(last_hidden_state=x)


def load_bert(folder: str | Path) -> Bert:
    """The encoder in a folder that `fits`, in float32 and in eval mode; weights of a pooler or a head are ignored.

    Raises CheckpointError, OSError, ValueError, KeyError, RuntimeError or SafetensorError for a damaged folder.
    """
    from safetensors.torch import load_file

    config = read_config(Path(folder))
    defaults = {"layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2, "hidden_act": "gelu"}
    network = Bert(SimpleNamespace(**defaults | config))
    weights = {name.removeprefix("bert."): value for name, value in load_file(Path(folder) / WEIGHTS).items()}
    expected = network.state_dict()
    if missing := [name for name in expected if name not in weights]:
        raise ValueError(f"{Path(folder) / WEIGHTS} lacks {len(missing)} weights, {missing[0]} for one")
    network.load_state_dict({name: weights[name].float() for name in expected}, assign=True)
    return network.eval()
