"""The trained joint passage reranker: a small decoder over encoder states that points at the next passage, given the picks so
far.

Source: Min et al. 2021 (JPR), section 3.1.  Theirs is a T5-3B whose encoder reads question and passage and whose decoder writes passage numbers;
here the encoder is the per-passage reader's, whose states are already computed, and a pointer over the passages replaces the numbers.  The reader's score of
a passage, discounted by the picked ones (`ReaderScorer`), is added to the pointer's score, so an untrained network ranks like that scorer.

Legend: T picked passages, N passages of the pool, S width of their states, d model width.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from core.errors import CheckpointError
from core.models.loading.files import digest, read_weights
from core.models.loading.finding import named_folder, read_config
from core.models.loading.once import loaded_once

KIND = "passages"


@dataclass(frozen=True)
class JointConfig:
    """`reader`: the digest of the reader that computed the training states."""

    reader: str
    states: int = 1152
    width: int = 96
    layers: int = 1
    heads: int = 4
    dropout: float = 0.1


class JointNetwork(nn.Module):
    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.config = config
        d = config.width
        self.norm = nn.LayerNorm(config.states)
        self.enter = nn.Linear(config.states, d)
        self.known = nn.Linear(1, d)  # the reader's score of a passage before anything is picked
        self.start = nn.Parameter(torch.randn(d) * 0.02)
        layer = nn.TransformerDecoderLayer(
            d, config.heads, 2 * d, config.dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.decoder = nn.TransformerDecoder(layer, config.layers, nn.LayerNorm(d))
        self.point = nn.Linear(d, d)
        self.key = nn.Linear(d, d)
        self.alone = nn.Linear(d, 1)  # score of a passage, independent of the picks
        self.trust = nn.Parameter(torch.ones(()))  # weight of the reader's own score
        for last in (self.point, self.alone):
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, states: Tensor, unpicked: Tensor, worth: Tensor, picks: Tensor) -> Tensor:
        """(N,) logits of the next passage after the prefix `picks` (T,), from states (N, S) and the reader's log scores (N,) of
        the passages before any pick and now."""
        passages = self.enter(self.norm(states)) + self.known(unpicked[:, None])  # (N, d)
        prefix = torch.cat([self.start[None], passages[picks]])  # (T + 1, d)
        future = torch.triu(torch.full((len(prefix),) * 2, float("-inf"), device=states.device), diagonal=1)
        out = self.decoder(prefix[None], passages[None], tgt_mask=future)[0, -1]  # (d,)
        pointed = self.key(passages) @ self.point(out) / self.config.width**0.5
        logits: Tensor = self.trust * worth + pointed + self.alone(passages).squeeze(-1)
        return logits


def load_joint(name: str, reader_digest: str) -> tuple[JointNetwork, str]:
    """(network in eval mode, digest of its weights) of a folder or a hub name.

    Raises CheckpointError if it is missing, damaged, or was trained on another reader's states.
    """
    folder = named_folder(name)
    if folder is None:
        raise CheckpointError(
            f"no passage reranker '{name}'; train one with `python -m core train passages`, or use reranker=reader"
        )
    network = _loaded(folder, weights := digest(folder))
    if network.config.reader != reader_digest:
        raise CheckpointError(
            f"the passage reranker {folder} was trained on the states of reader {network.config.reader}, not {reader_digest}; "
            "train it again with `python -m core train passages`, or use reranker=reader"
        )
    return network, weights


@loaded_once(1)
def _loaded(folder: Path, weights: str) -> JointNetwork:
    try:
        body: dict[str, Any] = read_config(folder)
        if body.get("kind") != KIND:
            raise ValueError(f"it holds a {body.get('kind')} model")
        network = JointNetwork(JointConfig(**body["config"]))
        network.load_state_dict(read_weights(folder))
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"passage reranker {folder} is damaged ({error}); train it again") from None
    return network.eval()
