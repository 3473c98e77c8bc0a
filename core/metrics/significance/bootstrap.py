"""Percentile bootstrap intervals over questions or items, and the paired comparison of two systems.

Sources: Efron and Tibshirani 1993, chapters 13 and 15; Koehn 2004 (paired bootstrap); scipy's permutation test, with add-one p-values as in
Phipson and Smyth 2010.  Deterministic for a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.base import Value

BOOTSTRAP_SAMPLES = 1000  # of every bootstrap and of every exchange test, where a caller or a user does not say otherwise
CONFIDENCE_LEVEL = 0.95
_CELLS = 2_000_000  # numbers drawn at a time, to bound memory

Interval = tuple[float, float]
Floats = NDArray[np.float64]
# how often each item was drawn (s, n) -> a value of each sample (s,), NaN where it is undefined
Statistic = Callable[[Floats], Floats]


def check_seed(seed: int) -> None:
    """Raises InputError for a negative seed."""
    if seed < 0:
        raise InputError(f"the seed is {seed}; it must be at least 0")


def _draws(n: int, samples: int, seed: int) -> Iterator[Floats]:
    """Blocks (s, n): the number of times that each of n items is in each sample."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, samples, step):
        size = min(step, samples - start)
        items = rng.integers(0, n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(items.ravel(), minlength=size * n).reshape(size, n).astype(float)


def resampled(n: int, statistic: Statistic, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0) -> Floats:
    """The defined values of the statistic over resampled items.  Raises InputError for samples < 1, seed < 0."""
    if samples < 1:
        raise InputError(f"the number of bootstrap samples is {samples}; it must be at least 1")
    check_seed(seed)
    values: Floats = np.concatenate([statistic(draws) for draws in _draws(n, samples, seed)]) if n else np.zeros(0)
    defined: Floats = values[~np.isnan(values)]
    return defined


def resampled_interval(n: int, statistic: Statistic, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0) -> Interval | None:
    """The interval over resampled items; None for fewer than two items, or if the statistic is undefined in most samples."""
    values = resampled(n, statistic, samples, seed)
    if n < 2 or 2 * len(values) < samples:
        return None
    low, high = np.quantile(values, [(1 - CONFIDENCE_LEVEL) / 2, (1 + CONFIDENCE_LEVEL) / 2])
    return float(low), float(high)


def interval(
    values: Sequence[Value], *, weights: Sequence[float] | None = None, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0
) -> Interval | None:
    """The interval of the (weighted) mean of the defined values; None for fewer than two.

    >>> interval([1.0, 1.0, 1.0, None])
    (1.0, 1.0)
    >>> interval([0.5, None]) is None
    True
    """
    pairs = [(v, w) for v, w in zip(values, weights or [1.0] * len(values), strict=True) if v is not None and w > 0]
    value, weight = np.array(pairs).reshape(-1, 2).T
    return resampled_interval(len(pairs), lambda draws: draws @ (value * weight) / (draws @ weight), samples, seed)


def harmonic_interval(
    a: Sequence[Value], b: Sequence[Value], *, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0
) -> Interval | None:
    """The interval of the harmonic mean of two means over the same questions, each over those where it is defined."""
    rows = [(x, y) for x, y in zip(a, b, strict=True) if x is not None or y is not None]
    table = np.array(rows, float).reshape(-1, 2)  # None is NaN
    defined, filled = (~np.isnan(table)).astype(float), np.nan_to_num(table)

    def statistic(draws: Floats) -> Floats:
        counts = draws @ defined  # (s, 2)
        means = np.divide(draws @ filled, counts, out=np.full_like(counts, np.nan), where=counts > 0)
        harmonic: Floats = 2 * means.prod(axis=1) / np.maximum(means.sum(axis=1), 1e-12)
        return harmonic

    return resampled_interval(len(rows), statistic, samples, seed)


@dataclass(frozen=True, slots=True)
class Comparison:
    """a minus b over the `n` questions where both are defined.

    `better`: share of bootstrap samples in which a's mean is above b's.  `p_value`: two-sided, by exchanging a and b at random in each
    question.  Everything but `n` is None if n is 0; the interval needs two questions.
    """

    n: int
    difference: float | None
    interval: Interval | None
    better: float | None
    p_value: float | None


def compare(a: Sequence[Value], b: Sequence[Value], *, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0) -> Comparison:
    """Paired comparison of two systems on the same questions in the same order.  Raises InputError for unequal lengths.

    >>> compare([1.0, 1.0, None], [0.5, 0.5, 1.0]).difference
    0.5
    """
    if len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} values cannot be paired; give both systems the same questions")
    difference = np.array([x - y for x, y in zip(a, b, strict=True) if x is not None and y is not None])
    n = len(difference)
    if not n:
        return Comparison(0, None, None, None, None)
    if n == 1:  # exchanging one question's values makes the same difference, or its opposite
        return Comparison(1, float(difference[0]), None, float(difference[0] > 0), 1.0)
    from scipy.stats import permutation_test

    means = resampled(n, lambda draws: draws @ difference / n, samples, seed)
    exchanged = permutation_test(
        (difference,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=samples,
        batch=max(1, _CELLS // n),
        rng=np.random.default_rng(seed),
    )
    ends = interval(difference.tolist(), samples=samples, seed=seed)
    return Comparison(n, float(difference.mean()), ends, float((means > 0).mean()), float(exchanged.pvalue))
