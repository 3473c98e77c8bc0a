from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from core.retrieval.rerank import length_penalty, tree_decode


class Table:
    """log P(next | path) from a function of the path; counts the paths that it was asked for."""

    def __init__(self, n: int, probability: object) -> None:
        self.n, self.probability, self.paths = n, probability, []  # type: ignore[var-annotated]

    def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
        self.paths += paths
        return [
            [-math.inf if j in path else math.log(self.probability(path, j)) for j in range(self.n)]  # type: ignore[operator]
            for path in paths
        ]


def test_independent_scores_are_a_plain_ranking() -> None:
    worth = [0.1, 0.4, 0.2, 0.3]
    picks = tree_decode(Table(4, lambda path, j: worth[j]), 4, beta=0.0)
    assert [p.passage for p in picks] == [1, 3, 2, 0]
    assert all(p.path == () for p in picks)  # the tree grew in width only
    assert picks[0].score == pytest.approx(math.log(0.4))


def test_a_passage_that_complements_those_picked_is_taken_deeper() -> None:
    """0 is best; 1 says the same as 0; 2 is poor for itself and sure once 0 is picked."""

    def probability(path: tuple[int, ...], j: int) -> float:
        if path == ():
            return (0.6, 0.25, 0.15)[j]
        return 0.95 if (path, j) == ((0,), 2) else 0.02

    picks = tree_decode(Table(3, probability), 2, beta=1.0)
    assert [(p.passage, p.path) for p in picks] == [(0, ()), (2, (0,))]
    flat = tree_decode(Table(3, lambda path, j: (0.6, 0.25, 0.15)[j]), 2, beta=0.0)
    assert [p.passage for p in flat] == [0, 1]


def test_a_larger_penalty_favours_depth() -> None:
    def probability(path: tuple[int, ...], j: int) -> float:
        return (0.5, 0.3, 0.2)[j] if not path else 0.2

    def deepest(beta: float) -> int:
        return max(len(p.path) for p in tree_decode(Table(3, probability), 3, beta))

    assert deepest(0.0) == 0
    assert deepest(6.0) > 0
    assert length_penalty(7, 0.0) == 1.0
    assert length_penalty(7, 1.0) == 2.0


def test_nothing_may_follow() -> None:
    class Empty:
        def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
            return [[-math.inf] * 3 for _ in paths]

    assert tree_decode(Empty(), 2) == []
