"""Calibration of probabilities: the reliability diagram, the expected calibration error, the Brier score.

Sources: Naeini, Cooper and Hauskrecht 2015, "Obtaining well calibrated probabilities using Bayesian binning" (expected calibration error over bins of equal
width); Guo et al. 2017, "On calibration of modern neural networks", section 2 (reliability diagrams); Brier 1950.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.metrics.answers import best_set, matching
from core.metrics.base import Example, Value
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.types import Step

CALIBRATION_BINS = 10
Forecast = tuple[float, bool]  # a probability, and whether the event occurred


@dataclass(frozen=True, slots=True)
class Bin:
    """The forecasts with probabilities from `low` to `high`: their number, their mean (`said`), and the observed frequency
    (`so`)."""

    low: float
    high: float
    n: int
    said: float
    so: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """`error`: the expected calibration error, the mean distance of forecast and observed frequency, weighted by the number of forecasts; None
    without forecasts.  `bins`: those with forecasts."""

    n: int
    error: Value
    bins: tuple[Bin, ...]


def reliability(forecasts: Sequence[Forecast]) -> Reliability:
    """The reliability diagram of probabilities in 0..1; 1.0 belongs to the last bin.

    >>> diagram = reliability([(0.9, True), (0.9, False), (0.1, False)])
    >>> round(diagram.error, 4), [(b.low, b.n, b.so) for b in diagram.bins]  # (2 x 0.4 + 0.1) / 3
    (0.3, [(0.1, 1, 0.0), (0.9, 2, 0.5)])
    >>> reliability([]).error is None
    True
    """
    groups: dict[int, list[Forecast]] = {}
    for p, occurred in forecasts:
        groups.setdefault(min(CALIBRATION_BINS - 1, int(p * CALIBRATION_BINS)), []).append((p, occurred))
    filled = tuple(
        Bin(
            k / CALIBRATION_BINS,
            (k + 1) / CALIBRATION_BINS,
            len(group),
            *(sum(column) / len(group) for column in zip(*group, strict=True)),
        )
        for k, group in sorted(groups.items())
    )
    error = sum(b.n * abs(b.said - b.so) for b in filled) / len(forecasts) if forecasts else None
    return Reliability(len(forecasts), error, filled)


def by_chance(bins: Sequence[tuple[int, float]]) -> float:
    """The expected calibration error that a perfectly calibrated system stays below in 95% of cases.  With few forecasts, more
    or fewer than expected come true by chance (Bröcker and Smith 2007, "Increasing the reliability of reliability diagrams":
    consistency resampling).

    `bins`: of each the number of its forecasts and their mean.

    >>> by_chance([(100, 0.5)]) < by_chance([(10, 0.5)]), by_chance([(10, 1.0)]), by_chance([])
    (True, 0.0, 0.0)
    """
    if not bins:
        return 0.0
    n, means = (np.array(part, dtype=float) for part in zip(*bins, strict=True))
    true = np.random.default_rng(0).binomial(n.astype(np.int64), np.clip(means, 0.0, 1.0), (BOOTSTRAP_SAMPLES, len(n)))
    errors = np.abs(n * means - true).sum(1) / n.sum()
    return float(np.quantile(errors, 0.95))


def judged(example: Example) -> list[Forecast]:
    """The probability of each answer and whether it is right by the annotation with the highest F1; [] if either is unknown."""
    references = best_set(example)
    if references is None or example.probabilities is None:
        return []
    right = {j for _, j in matching(references, example.answers)}
    return [(p, j in right) for j, p in enumerate(example.probabilities) if p is not None]


def ends_of(example: Example, steps: Sequence[Step]) -> list[Forecast]:
    """P([EOI]) at each step of a loop and whether no right answer remained; [] without [EOI] or references."""
    references = best_set(example)
    if references is None or not any(step.eoi_probability for step in steps):
        return []
    return [(s.eoi_probability, len(matching(references, s.previous)) == len(references)) for s in steps]


def margin(decisions: Sequence[tuple[float, float]], calibrated: bool) -> Value:
    """The certainty of a run's least certain step, from 0 to 1; None without steps.  `decisions`: each step's probability of
    its best candidate and of [EOI] (0 for a system without it).

    Calibrated, each of the two is a probability of its own, and a step is as certain as the one nearer to even odds.  Uncalibrated, they
    compete in one softmax, so that only their distance says something.

    >>> margin([(0.9, 0.1), (0.5, 0.1)], calibrated=True), round(margin([(0.9, 0.1), (0.5, 0.1)], calibrated=False), 1)
    (0.0, 0.4)
    >>> round(margin([(0.75, 0.0)], calibrated=True), 1), margin([], calibrated=True)
    (0.5, None)
    """
    if not calibrated:
        return min((abs(best - end) for best, end in decisions), default=None)
    return min((abs(2 * p - 1) for best, end in decisions for p in ([best, end] if end else [best])), default=None)


def brier(example: Example) -> Value:
    forecasts = judged(example)
    return sum((p - occurred) ** 2 for p, occurred in forecasts) / len(forecasts) if forecasts else None
