"""Chance-corrected agreement: Krippendorff's alpha with MASI distance, Cohen's and Fleiss' kappa, each with interval and n.

Sources: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Artstein and Poesio 2008 (survey; alpha with MASI); Cohen 1960;
Fleiss 1971; percentile bootstrap over items (Efron and Tibshirani 1993).  Where a coefficient is undefined (nobody annotated the same item,
or nobody ever said anything else, so that chance agreement is certain) `value` is None and `why` says so; libraries return NaN or 1.

Own formulas rather than nltk's: the expected disagreement is summed over sets that share an answer only (nltk: over all pairs of sets, which
is quadratic in the questions), answers have aliases, and each needs a bootstrap.  Tests compare values with nltk and scikit-learn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.metrics.agreement.answer_sets import AnswerSet, masi_distance
from core.metrics.base import Value, mean
from core.metrics.significance.bootstrap import interval as mean_interval

SAMPLES = 1000
_FEW = "no item has two annotations or more"
_SAME = "everybody always gave the same label, so agreement beyond chance is undefined"
Weights = NDArray[np.float64]  # how often each item was drawn


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` None: undefined, and `why` says why.  `n`: items that two people or more annotated.  `interval`: 95%."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    n: int
    why: str = ""

    @property
    def defined(self) -> bool:
        return self.value is not None


def _figure(
    name: str, n: int, statistic: Callable[[Weights], float | None], empty: str, same: str, samples: int, seed: int
) -> Figure:
    """The statistic of all n items and its percentile interval over resampled items.

    Samples in which it is undefined are left out; if that is half of them, there is no interval.
    """
    if samples < 1:
        raise InputError(f"the number of bootstrap samples is {samples}; it must be at least 1")
    if n == 0:
        return Figure(name, None, None, 0, empty)
    value = statistic(np.ones(n))
    if value is None:
        return Figure(name, None, None, n, same)
    if n < 2:
        return Figure(name, value, None, n)
    rng = np.random.default_rng(seed)
    drawn = (statistic(np.bincount(rng.integers(0, n, n), minlength=n).astype(float)) for _ in range(samples))
    kept = [v for v in drawn if v is not None]
    if 2 * len(kept) < samples:
        return Figure(name, value, None, n)
    low, high = np.quantile(kept, [0.025, 0.975])
    return Figure(name, value, (float(low), float(high)), n)


def alpha_masi(units: Sequence[Sequence[AnswerSet]], *, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """Krippendorff's alpha with MASI distance: 1 - observed / expected disagreement.  `units[i]`: the answer sets of item i, one a person.

    Items with fewer than two sets do not count.  Raises InputError for samples < 1.

    >>> from core.metrics.agreement.answer_sets import set_of
    >>> a, b = set_of(["x"]), set_of(["y"])
    >>> alpha_masi([[a, a], [b, b]]).value, alpha_masi([[a, a]]).value
    (1.0, None)
    """
    kept = [list(u) for u in units if len(u) >= 2]
    codes: dict[AnswerSet, int] = {}
    unit_of: list[int] = []
    value_of: list[int] = []
    disagreement = np.zeros(len(kept))  # sum over ordered pairs of one unit / (its sets - 1)
    for i, unit in enumerate(kept):
        for answers in unit:
            unit_of.append(i)
            value_of.append(codes.setdefault(answers, len(codes)))
        total = sum(masi_distance(a, b) for k, a in enumerate(unit) for b in unit[:k])
        disagreement[i] = 2 * total / (len(unit) - 1)
    sizes = np.array([len(u) for u in kept], dtype=float)
    left, right, likeness = _likeness(list(codes))
    units_array, values_array = np.array(unit_of, dtype=np.int64), np.array(value_of, dtype=np.int64)

    def statistic(weights: Weights) -> float | None:
        n = float(weights @ sizes)
        counts = np.bincount(values_array, weights=weights[units_array], minlength=len(codes))
        expected = n * n - float((counts[left] * counts[right] * likeness).sum())  # over ordered pairs of all sets
        if expected <= 1e-9 * n * n:
            return None
        return 1.0 - float(weights @ disagreement) * (n - 1) / expected

    return _figure("alpha (MASI)", len(kept), statistic, _FEW, _SAME, samples, seed)


def _likeness(values: Sequence[AnswerSet]) -> tuple[NDArray[np.int64], NDArray[np.int64], Weights]:
    """Ordered pairs of values, each with itself too, whose MASI distance is below 1: indices and 1 - distance."""
    by_alias: dict[str, list[int]] = defaultdict(list)
    for i, answers in enumerate(values):
        for alias in {alias for answer in answers for alias in answer}:
            by_alias[alias].append(i)
    left, right, likeness = list(range(len(values))), list(range(len(values))), [1.0] * len(values)
    for i, answers in enumerate(values):
        near = {j for answer in answers for alias in answer for j in by_alias[alias] if j < i}
        for j in sorted(near):
            alike = 1.0 - masi_distance(answers, values[j])
            left += [i, j]
            right += [j, i]
            likeness += [alike, alike]
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), np.array(likeness)


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]], *, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """Cohen's kappa of two people's labels, item by item.  Undefined if both always use the same label.

    >>> cohen_kappa([("yes", "yes"), ("no", "no")]).value, cohen_kappa([("yes", "yes")]).value
    (1.0, None)
    """
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    code = {label: i for i, label in enumerate(labels)}
    k = max(1, len(labels))
    cells = np.array([code[a] * k + code[b] for a, b in pairs], dtype=np.int64)

    def statistic(weights: Weights) -> float | None:
        table = np.bincount(cells, weights=weights, minlength=k * k).reshape(k, k)
        return _kappa(table / table.sum())

    return _figure("kappa (Cohen)", len(pairs), statistic, "no item was labelled by both", _SAME, samples, seed)


def _kappa(shares: Weights) -> float | None:
    """(p_o - p_e) / (1 - p_e) of a k x k table of shares."""
    expected = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return None if expected >= 1 - 1e-12 else (float(np.trace(shares)) - expected) / (1 - expected)


def fleiss_kappa(units: Sequence[Sequence[Hashable]], *, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """Fleiss' kappa of any number of people's labels.  Items may have different numbers of labels (two or more): each item's agreement is
    the share of its pairs that agree, and items weigh alike; with equal numbers this is Fleiss 1971.

    >>> fleiss_kappa([["a", "a", "a"], ["b", "b", "b"]]).value
    1.0
    """
    kept = [list(u) for u in units if len(u) >= 2]
    labels = list(dict.fromkeys(label for unit in kept for label in unit))
    code = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(kept), max(1, len(labels))))
    for i, unit in enumerate(kept):
        for label in unit:
            counts[i, code[label]] += 1
    sizes = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1)

    def statistic(weights: Weights) -> float | None:
        shares = weights @ counts
        shares = shares / shares.sum()
        expected = float((shares**2).sum())
        observed = float(weights @ agreeing / weights.sum())
        return None if expected >= 1 - 1e-12 else (observed - expected) / (1 - expected)

    return _figure("kappa (Fleiss)", len(kept), statistic, _FEW, _SAME, samples, seed)


def mean_figure(name: str, values: Sequence[Value], empty: str, *, samples: int = SAMPLES, seed: int = 0) -> Figure:
    """Mean over items of what is defined, with its interval.

    >>> mean_figure("F1", [1.0, None, 0.5], "nothing shared").n
    2
    """
    kept = [v for v in values if v is not None]
    value = mean(kept)
    if value is None:
        return Figure(name, None, None, 0, empty)
    return Figure(name, value, mean_interval(kept, samples=samples, seed=seed), len(kept))
