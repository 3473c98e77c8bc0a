"""Which candidates to keep, given how probable it is that each is right: the set of highest expected F1.

Sources: Lewis 1995, "Evaluating and optimizing autonomous text classification systems" (where candidates are right independently of one another, the
best set of a size holds the most probable ones, so that only the sizes need be compared); Ye, Chai, Lee and Chieu 2012, "Optimizing F-measures: a tale
of two approaches", section 4 (the expectation by the distribution of counts).  An empty set if nothing is right has the F1 1, as there.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import InputError


def counts(probabilities: Sequence[float]) -> list[float]:
    """P(exactly j of the candidates are right) for j = 0..n: the Poisson binomial distribution.  Raises InputError for a value outside 0..1.

    >>> counts([0.5, 0.5])
    [0.25, 0.5, 0.25]
    """
    out = [1.0]
    for p in probabilities:
        if not 0.0 <= p <= 1.0:
            raise InputError(f"{p} is not a probability; it must be between 0 and 1")
        out = [(1 - p) * stays + p * grows for stays, grows in zip([*out, 0.0], [0.0, *out])]
    return out


def expected_f1(kept: Sequence[float], left: Sequence[float]) -> float:
    """The expected F1 of keeping some candidates and leaving others, each right with its probability, independently of the others.

    With i right ones kept of k and j right ones left, F1 is 2i / (k + i + j).

    >>> expected_f1([1.0], [0.5]), expected_f1([], [0.25])
    (0.8333333333333333, 0.75)
    """
    right, missed = counts(kept), counts(left)
    if not kept:
        return missed[0]
    return sum(p * q * 2 * i / (len(kept) + i + j) for i, p in enumerate(right) for j, q in enumerate(missed))


def most_expected(candidates: Sequence[float], given: Sequence[float] = (), least: int = 0) -> int:
    """How many of the candidates to keep in addition to `given`: the smallest number of the most probable ones with the highest expected
    F1.  `least`: the minimum, including given ones, if there are enough.

    >>> most_expected([0.9, 0.6, 0.1]), most_expected([0.6, 0.1], given=[1.0]), most_expected([0.1, 0.1])
    (2, 1, 0)
    >>> most_expected([0.1, 0.1], least=1)  # an empty set is never right if an answer is known to exist
    2
    """
    order = sorted(candidates, reverse=True)
    sizes = range(min(len(order), max(0, least - len(given))), len(order) + 1)
    return max(sizes, key=lambda k: (round(expected_f1([*given, *order[:k]], order[k:]), 12), -k))
