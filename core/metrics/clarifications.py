"""The share of right answers with a disambiguated question that passes the round trip (core.disambiguation.round_trip).

A question counts once per right answer.  Undefined if the system clarifies nothing.
"""

from __future__ import annotations

from core.metrics.answers import best_set, matching
from core.metrics.base import Example, Value


def right_ones(example: Example) -> list[int]:
    """The indexes of the right answers, by the annotation with the highest F1."""
    best = best_set(example)
    return [] if best is None else [j for _, j in matching(best, example.answers)]


def clarified(example: Example) -> Value:
    right = right_ones(example)
    if not right or example.passed is None or all(p is None for p in example.passed):
        return None
    return sum(bool(example.passed[j]) for j in right) / len(right)
