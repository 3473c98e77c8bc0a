"""Chance-corrected agreement: Krippendorff's alpha with MASI distance, Cohen's and Fleiss' kappa, each with interval and n.

Sources: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Artstein and Poesio 2008 (survey; alpha with MASI); Cohen 1960;
Fleiss 1971; percentile bootstrap over items (Efron and Tibshirani 1993).  Where a coefficient is undefined (nobody annotated the same item,
or nobody ever said anything else, so that chance agreement is certain) `value` is None and `why` says so; libraries return NaN or 1.

Own formulas rather than nltk's: the expected disagreement is summed over sets that share an answer only (nltk: over all pairs of sets, which
is quadratic in the questions), answers have aliases, and each needs a bootstrap.  Tests compare values with nltk and scikit-learn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, starmap

import numpy as np

from core.metrics.agreement.answer_sets import AnswerSet, masi_distance
from core.metrics.base import Value
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES, Floats, Statistic, resampled_interval

_FEW = "no item has two annotations or more"
_ONE_LABEL = "everybody always gave the same label, so agreement beyond chance is undefined"


@dataclass(frozen=True, slots=True)
class Figure:
    """`value`: None if undefined, and `why` gives the reason.  `n`: the number of items that two people or more annotated.
    `interval`: 95%."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    n: int
    why: str = ""

    @property
    def defined(self) -> bool:
        return self.value is not None


def _figure(name: str, n: int, statistic: Statistic, empty: str, samples: int) -> Figure:
    """The statistic of all n items and its interval over resampled items. `empty`: the reason why it is undefined if n is
    0."""
    if n == 0:
        return Figure(name, None, None, 0, empty)
    value = float(statistic(np.ones((1, n)))[0])
    if np.isnan(value):
        return Figure(name, None, None, n, _ONE_LABEL)
    return Figure(name, value, resampled_interval(n, statistic, samples), n)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """(p_o - p_e) / (1 - p_e); NaN where chance agreement is certain."""
    possible = 1 - expected
    return np.divide(observed - expected, possible, out=np.full_like(possible, np.nan), where=possible > 1e-12)


def alpha_masi(units: Sequence[Sequence[AnswerSet]], *, samples: int = BOOTSTRAP_SAMPLES) -> Figure:
    """Krippendorff's alpha with MASI distance: 1 - observed / expected disagreement.  `units[i]`: the answer sets of item i,
    one for each person.

    Items with fewer than two sets do not count.

    >>> from core.metrics.agreement.answer_sets import set_of
    >>> a, b = set_of(["x"]), set_of(["y"])
    >>> alpha_masi([[a, a], [b, b]]).value, alpha_masi([[a, a]]).value
    (1.0, None)
    """
    units = [u for u in units if len(u) >= 2]
    codes: dict[AnswerSet, int] = {}
    unit_of = [i for i, unit in enumerate(units) for _ in unit]
    code_of = [codes.setdefault(answers, len(codes)) for unit in units for answers in unit]
    # sum over ordered pairs of one unit / (its sets - 1)
    disagreement = np.array([2 * sum(starmap(masi_distance, combinations(unit, 2))) / (len(unit) - 1) for unit in units])
    from scipy.sparse import csr_array

    sizes = np.array([len(u) for u in units], dtype=float)
    sets = csr_array((np.ones(len(unit_of)), (unit_of, code_of)), shape=(len(units), len(codes)))
    first, second, similarity = _similar(list(codes))
    similar = csr_array((similarity, (first, second)), shape=(len(codes), len(codes)))

    def statistic(draws: Floats) -> Floats:
        n, counts = draws @ sizes, draws @ sets  # (s,), (s, different sets)
        expected = n * n - ((counts @ similar) * counts).sum(axis=1)  # over ordered pairs of all sets
        observed = (draws @ disagreement) * (n - 1)
        alpha: Floats = 1 - np.divide(observed, expected, out=np.full_like(expected, np.nan), where=expected > 1e-9 * n * n)
        return alpha

    return _figure("alpha (MASI)", len(units), statistic, _FEW, samples)


def _similar(values: Sequence[AnswerSet]) -> tuple[list[int], list[int], list[float]]:
    """The ordered pairs of values, including each value with itself, whose MASI distance is below 1, as indices and 1 -
    distance."""
    by_alias: dict[str, list[int]] = defaultdict(list)
    for i, answers in enumerate(values):
        for alias in {alias for answer in answers for alias in answer}:
            by_alias[alias].append(i)
    first, second, similarity = list(range(len(values))), list(range(len(values))), [1.0] * len(values)
    for i, answers in enumerate(values):
        near = {j for answer in answers for alias in answer for j in by_alias[alias] if j < i}
        for j in sorted(near):
            first += [i, j]
            second += [j, i]
            similarity += [1.0 - masi_distance(answers, values[j])] * 2
    return first, second, similarity


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]], *, samples: int = BOOTSTRAP_SAMPLES) -> Figure:
    """Cohen's kappa of two people's labels, item by item.  Undefined if both always use the same label.

    >>> cohen_kappa([("yes", "yes"), ("no", "no")]).value, cohen_kappa([("yes", "yes")]).value
    (1.0, None)
    """
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    code = {label: i for i, label in enumerate(labels)}
    k = max(1, len(labels))
    cells = np.eye(k * k)[[code[a] * k + code[b] for a, b in pairs]]  # (n, k * k)

    def statistic(draws: Floats) -> Floats:
        shares = (draws @ cells).reshape(-1, k, k) / len(pairs)
        return _beyond_chance(np.einsum("sii->s", shares), (shares.sum(axis=2) * shares.sum(axis=1)).sum(axis=1))

    return _figure("kappa (Cohen)", len(pairs), statistic, "no item was labelled by both", samples)


def fleiss_kappa(units: Sequence[Sequence[Hashable]], *, samples: int = BOOTSTRAP_SAMPLES) -> Figure:
    """Fleiss' kappa of any number of people's labels.  Items may have different numbers of labels (two or more): each item's agreement is
    the share of its pairs that agree, and items weigh alike; with equal numbers this is Fleiss 1971.

    >>> fleiss_kappa([["a", "a", "a"], ["b", "b", "b"]]).value
    1.0
    """
    units = [u for u in units if len(u) >= 2]
    labels = list(dict.fromkeys(label for unit in units for label in unit))
    code = {label: i for i, label in enumerate(labels)}
    counts = np.zeros((len(units), max(1, len(labels))))
    for i, unit in enumerate(units):
        for label in unit:
            counts[i, code[label]] += 1
    sizes = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1)

    def statistic(draws: Floats) -> Floats:
        shares = draws @ counts
        shares = shares / shares.sum(axis=1, keepdims=True)
        return _beyond_chance(draws @ agreeing / len(units), (shares**2).sum(axis=1))

    return _figure("kappa (Fleiss)", len(units), statistic, _FEW, samples)


def mean_figure(name: str, values: Sequence[Value], empty: str, *, samples: int = BOOTSTRAP_SAMPLES) -> Figure:
    """The mean over the items where the value is defined, with its interval.

    >>> mean_figure("F1", [1.0, None, 0.5], "nothing shared").n
    2
    """
    defined = np.array([v for v in values if v is not None])
    return _figure(name, len(defined), lambda draws: draws @ defined / len(defined), empty, samples)
