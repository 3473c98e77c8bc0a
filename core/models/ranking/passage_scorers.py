"""Autoregressive rerankers: the probability that a passage is picked next, given the picks so far.

Source: Min et al. 2021 (JPR), section 3.1.  Theirs is a trained T5-3B that decodes passage numbers and is rewarded for passages with new answers.
`TrainedScorer` has a small decoder trained for this (core.models.ranking.passage_network).  `ReaderScorer` is untrained: it reads every passage once and
discounts answers that the picked passages already give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from core.models.ranking.passage_network import JointNetwork
from core.models.span.reader import Readout
from core.text import answer_words, overlapping

ANSWERS_PER_PASSAGE = 3  # answers considered of each passage
MIN_PROBABILITY = 1e-6


class ReaderScorer:
    """`diversity` in 0..1: the share of its score that a passage loses if the picked ones already give its answer (0: no diversification)."""

    def __init__(
        self, readouts: Sequence[Readout], similarities: Sequence[float | None], diversity: float = 0.9, prior: float = 8.0
    ) -> None:
        """`similarities`: cosines of question and passages; `prior` times (cosine - the best one) is added to a passage's log worth."""
        best = max((s for s in similarities if s is not None), default=0.0)
        self.prior = np.array([math.exp(prior * ((best if s is None else s) - best)) for s in similarities])
        readings = [[(answer_words(c.text), c.probability) for c in r.candidates[:ANSWERS_PER_PASSAGE]] for r in readouts]
        self.probabilities = np.zeros((len(readouts), ANSWERS_PER_PASSAGE))  # probability of each passage's readings
        # covered[j, k, i]: what passage i gives reading k of passage j, or one that contains it or is contained in it
        self.covered = np.zeros((len(readouts), ANSWERS_PER_PASSAGE, len(readouts)))
        texts = list(dict.fromkeys(text for passage_readings in readings for text, _ in passage_readings if text))
        related = {(x, y) for x in texts for y in texts if x == y or overlapping(x, y)}
        for j, passage_readings in enumerate(readings):
            for k, (text, probability) in enumerate(passage_readings):
                self.probabilities[j, k] = probability if text else 0.0
                for i, others in enumerate(readings):
                    self.covered[j, k, i] = max((p for other, p in others if (text, other) in related), default=0.0)
        self.diversity = diversity

    def log_worth(self, path: Sequence[int]) -> list[float]:
        """The log worth of each passage: the probability of its likeliest answer, discounted if a picked passage gives that
        answer, times the prior.

        Never -inf, so that every passage can be picked eventually.
        """
        covered = self.covered[:, :, list(path)].max(-1) if path else 0.0
        worths = (self.probabilities * (1 - self.diversity * covered)).max(-1) * self.prior
        logs: list[float] = np.log(np.maximum(MIN_PROBABILITY, worths)).tolist()
        return logs

    def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """The log probability of each passage as the next one, for each path of picked passages; -inf for those already
        picked."""
        out: list[list[float]] = []
        for path in paths:
            logs = np.array(self.log_worth(path))
            logs[list(path)] = -math.inf
            out.append((logs - np.logaddexp.reduce(logs) if len(path) < len(logs) else logs).tolist())
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
            picks = torch.tensor(path, dtype=torch.long, device=self._device)
            worth = torch.tensor(self.reader.log_worth(path), device=self._device)
            with torch.inference_mode():
                logits = self.network(self._states, self._unpicked, worth, picks)
                logits = logits.index_fill(0, picks, -math.inf)
                out.append(torch.log_softmax(logits, 0).tolist() if len(path) < len(logits) else logits.tolist())
        return out
