"""The verifier's network: an encoder with trained low-rank updates, and a head that scores spans.

Legend: B windows, L tokens a window, d model width, S spans of all windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from core.models.encoders.low_rank import adapt, differences, merge
from core.models.encoders.mpnet import MPNet


@dataclass(frozen=True)
class VerifierConfig:
    """`trained_layers`: of the encoder, from the top; the others are the base's."""

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


class VerifierNetwork(nn.Module):
    def __init__(self, encoder: MPNet, config: VerifierConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = encoder
        adapt(encoder, config.trained_layers, config.rank)
        width = encoder.config.hidden_size
        self.head = nn.Sequential(nn.Linear(3 * width, config.hidden), nn.GELU(), nn.Linear(config.hidden, 1))
        self.edges = nn.Linear(width, 2)  # for training: where an answer starts and ends

    def forward(self, batch: WindowBatch) -> tuple[Tensor, Tensor]:
        """((S,) logits: is the span an answer to its window's question?, (B, L, 2) scores of each token as an answer's first and last)."""
        x = self.encoder(batch.input_ids, batch.mask).last_hidden_state
        span = torch.cat([x[batch.row, batch.first], x[batch.row, batch.last], x[batch.row, 0]], dim=-1)
        return self.head(span).squeeze(-1).float(), self.edges(x).float()

    def trained(self) -> dict[str, Tensor]:
        """The weights that the base does not have, by name."""
        own = {n: t for n, t in self.state_dict().items() if n.startswith(("head.", "edges."))}
        return own | differences(self)

    def merge(self) -> VerifierNetwork:
        """For inference: differences are added to the matrices.  It cannot be trained on after that."""
        merge(self.encoder, self.config.trained_layers)
        return self.eval().requires_grad_(False)
