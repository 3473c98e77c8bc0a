"""Percentile bootstrap intervals of means over questions, and the paired comparison of two systems.

Sources: Efron and Tibshirani 1993, chapters 13 and 15; Koehn 2004 (paired bootstrap); add-one permutation p-values as in Phipson and Smyth
2010.  Questions are resampled.  Deterministic for a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.base import Value

_CELLS = 2_000_000  # numbers drawn at a time, to bound memory


def _draws(count: int, samples: int, seed: int) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // count)
    return [rng.integers(0, count, size=(min(step, samples - at), count)) for at in range(0, samples, step)]


def _check(samples: int) -> None:
    if samples < 1:
        raise InputError(f"the number of bootstrap samples is {samples}; it must be at least 1")


def interval(
    values: Sequence[Value], *, weights: Sequence[float] | None = None, samples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float] | None:
    """The percentile interval of the (weighted) mean of the defined values.

    None for fewer than two defined values.  Raises InputError for samples < 1.

    >>> interval([1.0, 1.0, 1.0, None])
    (1.0, 1.0)
    >>> interval([0.5, None]) is None
    True
    """
    _check(samples)
    kept = [(v, 1.0 if weights is None else weights[i]) for i, v in enumerate(values) if v is not None]
    kept = [(v, w) for v, w in kept if w > 0]
    if len(kept) < 2:
        return None
    value = np.array([v for v, _ in kept])
    weight = np.array([w for _, w in kept])
    means = np.concatenate(
        [(value[d] * weight[d]).sum(axis=1) / weight[d].sum(axis=1) for d in _draws(len(kept), samples, seed)]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def harmonic_interval(
    a: Sequence[Value], b: Sequence[Value], *, samples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float] | None:
    """The percentile interval of the harmonic mean of two means over the same questions, each over those where it is defined.

    None if fewer than two questions have one of them.  Raises InputError for samples < 1.
    """
    _check(samples)
    rows = [(x, y) for x, y in zip(a, b, strict=True) if x is not None or y is not None]
    if len(rows) < 2:
        return None
    table = np.array([[np.nan if v is None else v for v in row] for row in rows])
    found: list[float] = []
    for draw in _draws(len(rows), samples, seed):
        there = ~np.isnan(table[draw])  # (samples, questions, 2)
        sums, counts = np.nan_to_num(table[draw]).sum(axis=1), there.sum(axis=1)
        p, r = (sums / np.maximum(counts, 1)).T
        value = 2 * p * r / np.maximum(p + r, 1e-12)
        found += value[(counts > 0).all(axis=1)].tolist()
    if not found:
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """a minus b over the `n` questions where both are defined.

    `better`: share of bootstrap samples in which a's mean is above b's.  `p_value`: two-sided, by exchanging a and b at random in each
    question.  Everything but `n` is None if n is 0; the interval needs two questions.
    """

    n: int
    difference: float | None
    interval: tuple[float, float] | None
    better: float | None
    p_value: float | None


def compare(a: Sequence[Value], b: Sequence[Value], *, samples: int = 1000, seed: int = 0) -> Comparison:
    """Paired comparison of two systems on the same questions in the same order.  Raises InputError for unequal lengths.

    >>> compare([1.0, 1.0, None], [0.5, 0.5, 1.0]).difference
    0.5
    """
    _check(samples)
    if len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} values cannot be paired; give both systems the same questions")
    difference = np.array([x - y for x, y in zip(a, b, strict=True) if x is not None and y is not None])
    if not len(difference):
        return Comparison(0, None, None, None, None)
    observed = float(difference.mean())
    means = np.concatenate([difference[d].mean(axis=1) for d in _draws(len(difference), samples, seed)])
    rng = np.random.default_rng(seed)
    extreme = 0
    step = max(1, _CELLS // len(difference))
    for at in range(0, samples, step):
        signs = rng.choice((-1.0, 1.0), size=(min(step, samples - at), len(difference)))
        # tolerance for rounding, so that equally extreme exchanges count
        extreme += int((np.abs((signs * difference).mean(axis=1)) >= abs(observed) - 1e-12).sum())
    return Comparison(
        len(difference),
        observed,
        interval([float(d) for d in difference], samples=samples, seed=seed),
        float((means > 0).mean()),
        (extreme + 1) / (samples + 1),
    )
