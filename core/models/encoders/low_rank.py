"""Low-rank adaptation (Hu et al. 2022, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1) of a BERT-like
encoder or a Llama-like decoder: only rank-r updates to the linear maps of its upper layers are trained and stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.models.loading.files import read_weights

ENCODER_MAPS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
DECODER_MAPS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


class LowRank(nn.Module):
    """A frozen linear map with a trained update of rank r: W x + B A x."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.normal_(self.down, std=linear.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """(B, L, in) -> (B, L, out)."""
        x = x.to(self.linear.weight.dtype)  # once; autocast would convert it for each of the two products
        update = nn.functional.linear(x, self.down)  # (B, L, r)
        return torch.baddbmm(self.linear(x), update, self.up.t().expand(len(x), -1, -1))

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The same map as one matrix, so that inference costs no more than the base."""
        self.linear.weight += self.up @ self.down
        return self.linear


def adapt(encoder: Any, layers: int, rank: int) -> None:
    """Freezes an encoder (or decoder) and adds trainable updates to the linear maps of its upper `layers` layers."""
    encoder.requires_grad_(False)
    for layer, path in _maps(encoder, layers):
        layer.set_submodule(path, LowRank(layer.get_submodule(path), rank))


def merge(encoder: Any, layers: int) -> None:
    """Merges the updates into the matrices for inference.  The model can't be trained any further."""
    for layer, path in _maps(encoder, layers):
        module = layer.get_submodule(path)
        if isinstance(module, LowRank):
            layer.set_submodule(path, module.merged())


def cast_frozen(network: nn.Module, dtype: torch.dtype) -> None:
    """Stores the frozen matrices in the precision of autocast, which would otherwise convert all of them at each step."""
    for module in network.modules():
        if isinstance(module, LowRank):
            module.linear.to(dtype)


def differences(network: nn.Module) -> dict[str, Tensor]:
    """The weights of the updates, by name."""
    return {n: t for n, t in network.state_dict().items() if n.endswith((".down", ".up"))}


def load_trained(network: Any, folder: Path) -> None:
    """Loads the weights that `network.trained()` names from a checkpoint.  The other weights stay those of the base.

    Raises ValueError for weights that are missing or unknown, and as safetensors and torch do.
    """
    tensors = read_weights(folder)
    if odd := sorted(set(tensors) ^ set(network.trained())):
        raise ValueError(f"{len(odd)} weights are missing or unknown, {odd[0]} for one")
    network.load_state_dict(tensors, strict=False)


def _maps(encoder: Any, layers: int) -> list[tuple[Any, str]]:
    """(layer, path in it) of the linear maps of the upper layers."""
    is_decoder = hasattr(encoder, "layers")
    blocks, paths = (encoder.layers, DECODER_MAPS) if is_decoder else (encoder.encoder.layer, ENCODER_MAPS)
    return [(layer, path) for layer in list(blocks)[-layers:] for path in paths]
