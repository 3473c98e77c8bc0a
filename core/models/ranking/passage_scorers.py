"""Autoregressive rerankers: how likely a passage is the next one to pick, given those picked.

Source: Min et al. 2021 (JPR), section 3.1.  Theirs is a trained T5-3B that decodes passage numbers and is rewarded for passages with new answers.
`TrainedScorer` has a small decoder trained for this (core.models.ranking.passage_network).  `ReaderScorer` is untrained: it reads every passage once and
discounts answers that the picked passages already give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from core.models.ranking.passage_network import JointNetwork
from core.models.span.reader import Readout
from core.text import answer_words, overlapping

CANDIDATES = 3  # readings per passage that count
LEAST = 1e-6


def _log_shares(worth: Sequence[float], temperature: float) -> list[float]:
    """log of worth ** (1 / temperature), normalised; never -inf, so that every passage can be picked eventually."""
    logs = [math.log(max(LEAST, w)) / temperature for w in worth]
    top = max(logs)
    total = top + math.log(sum(math.exp(v - top) for v in logs))
    return [v - total for v in logs]


class ReaderScorer:
    """`diversity` in 0..1: the share of its score that a passage loses if the picked ones already give its answer (0: no diversification)."""

    def __init__(
        self,
        readouts: Sequence[Readout],
        similarities: Sequence[float | None],
        diversity: float = 0.9,
        prior: float = 8.0,
        temperature: float = 1.0,
    ) -> None:
        """`similarities`: cosines of question and passages; `prior` times (cosine - the best one) is added to a passage's log worth."""
        best = max((s for s in similarities if s is not None), default=0.0)
        self.prior = np.array([math.exp(prior * ((best if s is None else s) - best)) for s in similarities])
        said = [[(answer_words(c.text), c.probability) for c in r.candidates[:CANDIDATES]] for r in readouts]
        self.given = np.zeros((len(readouts), CANDIDATES))  # probability of each passage's readings
        # covered[j, k, i]: what passage i gives reading k of passage j, or one that contains it or is contained in it
        self.covered = np.zeros((len(readouts), CANDIDATES, len(readouts)))
        texts = list(dict.fromkeys(text for own in said for text, _ in own if text))
        same = {(x, y) for x in texts for y in texts if x == y or overlapping(x, y)}
        for j, own in enumerate(said):
            for k, (text, probability) in enumerate(own):
                self.given[j, k] = probability if text else 0.0
                for i, others in enumerate(said):
                    self.covered[j, k, i] = max((p for other, p in others if (text, other) in same), default=0.0)
        self.diversity, self.temperature = diversity, temperature

    def worth(self, passage: int, path: Sequence[int]) -> float:
        """The probability of a passage's likeliest answer, discounted if the picked passages give it, times the prior."""
        return float(self._worths(path)[passage])

    def _worths(self, path: Sequence[int]) -> NDArray[np.float64]:
        covered = self.covered[:, :, list(path)].max(-1) if path else np.zeros_like(self.given)
        worths: NDArray[np.float64] = (self.given * (1 - self.diversity * covered)).max(-1) * self.prior
        return worths

    def log_worth(self, path: Sequence[int]) -> list[float]:
        """Log score of each passage, picked or not."""
        found: list[float] = np.log(np.maximum(LEAST, self._worths(path))).tolist()
        return found

    def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
        out = []
        for path in paths:
            worths = self._worths(path)
            left = [j for j in range(len(worths)) if j not in path]
            shares = _log_shares([float(worths[j]) for j in left], self.temperature) if left else []
            by_passage = dict(zip(left, shares))
            out.append([by_passage.get(j, -math.inf) for j in range(len(worths))])
        return out


class TrainedScorer:
    """A JointNetwork over a pool: states (N, S) of its passages, and the reader's scores."""

    def __init__(self, network: JointNetwork, states: Tensor, reader: ReaderScorer) -> None:
        self.network, self.reader = network, reader
        self._device = next(network.parameters()).device
        self._states = states.to(self._device)
        self._unpicked = torch.tensor(reader.log_worth(()), device=self._device)

    def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
        out = []
        for path in paths:
            picked = torch.tensor(path, dtype=torch.long, device=self._device)
            worth = torch.tensor(self.reader.log_worth(path), device=self._device)
            with torch.inference_mode():
                logits = self.network(self._states, self._unpicked, worth, picked)
                logits = logits.index_fill(0, picked, -math.inf)
                out.append(torch.log_softmax(logits, 0).tolist() if len(path) < len(logits) else logits.tolist())
        return out
