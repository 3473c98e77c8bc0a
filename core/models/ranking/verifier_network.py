"""The verifier's network: an encoder of which only low-rank differences are trained and stored, and a head that judges spans.

Low-rank adaptation: Hu et al. 2022, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1.

Legend: B windows, L tokens a window, d model width, S spans of all windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from core.models.encoders.mpnet import MPNet

ADAPTED = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


@dataclass(frozen=True)
class VerifierConfig:
    """`trained_layers`: of the encoder, counted from the top; the others are the base's own."""

    base: str = "mpnet"
    rank: int = 16
    trained_layers: int = 8
    hidden: int = 256
    max_tokens: int = 160  # of a question with a window
    window_words: int = 45

    def __post_init__(self) -> None:
        for name in ("rank", "trained_layers", "hidden", "window_words"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 32 <= self.max_tokens <= 512:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be 32..512")


@dataclass
class WindowBatch:
    """Questions with a window of a passage each, and the spans to be judged."""

    input_ids: Tensor  # (B, L)
    mask: Tensor  # (B, L) boolean, real tokens
    row: Tensor  # (S,) window of a span
    first: Tensor  # (S,) its first token
    last: Tensor  # (S,) its last token
    inside: Tensor  # (B, L) boolean, tokens of the window's text

    def to(self, device: torch.device) -> WindowBatch:
        return WindowBatch(**{name: value.to(device) for name, value in self.__dict__.items()})


class LowRank(nn.Module):
    """A frozen linear map with a trained difference of rank r: W x + B A x."""

    def __init__(self, linear: nn.Linear, rank: int) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.normal_(self.down, std=linear.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x) + nn.functional.linear(nn.functional.linear(x, self.down), self.up)
        return out

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The same map as one matrix: inference costs what the base costs."""
        self.linear.weight += self.up @ self.down
        return self.linear


def _adapted(encoder: MPNet, layers: int) -> list[tuple[nn.Module, str]]:
    """(parent, name) of the linear maps of the upper layers."""
    out: list[tuple[nn.Module, str]] = []
    for layer in list(encoder.encoder.layer)[-layers:]:
        for path in ADAPTED:
            parent, _, name = path.rpartition(".")
            out.append((layer.get_submodule(parent) if parent else layer, name))
    return out


class VerifierNetwork(nn.Module):
    def __init__(self, encoder: MPNet, config: VerifierConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder.requires_grad_(False)
        for parent, name in _adapted(encoder, config.trained_layers):
            _put(parent, name, LowRank(_get(parent, name), config.rank))
        width = encoder.config.hidden_size
        self.head = nn.Sequential(nn.Linear(3 * width, config.hidden), nn.GELU(), nn.Linear(config.hidden, 1))
        self.edges = nn.Linear(width, 2)  # for training: where would an answer start and end?

    def forward(self, batch: WindowBatch) -> tuple[Tensor, Tensor]:
        """((S,) logits: is the span an answer to its window's question?, (B, L, 2) scores of each token as an answer's first and last)."""
        x = self.encoder(batch.input_ids, batch.mask).last_hidden_state
        span = torch.cat([x[batch.row, batch.first], x[batch.row, batch.last], x[batch.row, 0]], dim=-1)
        return self.head(span).squeeze(-1).float(), self.edges(x).float()

    def trained(self) -> dict[str, Tensor]:
        """The weights that the base does not have, by name."""
        return {n: t for n, t in self.state_dict().items() if n.startswith(("head.", "edges.")) or n.endswith((".down", ".up"))}

    def merge(self) -> VerifierNetwork:
        """For inference: differences are added to the matrices.  It cannot be trained on after that."""
        for parent, name in _adapted(self.encoder, self.config.trained_layers):
            found = _get(parent, name)
            if isinstance(found, LowRank):
                _put(parent, name, found.merged())
        return self.eval().requires_grad_(False)


def _get(parent: nn.Module, name: str) -> Any:
    return parent[name] if isinstance(parent, nn.ModuleDict) else getattr(parent, name)


def _put(parent: nn.Module, name: str, module: nn.Module) -> None:
    if isinstance(parent, nn.ModuleDict):
        parent[name] = module
    else:
        setattr(parent, name, module)
