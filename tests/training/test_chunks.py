"""Chunks: fair epochs, exact positions, an end to an endless search."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from core.errors import InputError
from core.training.data.chunks import GROUPS, batches, draw
from core.training.data.examples import MultiExample


def examples(name: str, count: int) -> list[MultiExample]:
    return [MultiExample(f"{name}{i}", (), (), name) for i in range(count)]


def test_every_example_comes_once_in_an_epoch_also_over_the_edge_of_a_chunk() -> None:
    sources = [(examples("a", 7), 0.5), (examples("b", 3), 0.5)]
    for start in range(3):
        drawn = [e.question for chunk in range(7) for e in draw(sources, start, chunk, size=10)]
        assert Counter(q for q in drawn if q[0] == "a") == {f"a{i}": 5 for i in range(7)}
        first = [q for q in drawn if q[0] == "a"]
        for epoch in range(5):  # 5 of a chunk, 7 of an epoch
            assert len(set(first[7 * epoch : 7 * epoch + 7])) == 7
    assert [e.question for e in draw(sources, 1, 4, 10)] == [e.question for e in draw(sources, 1, 4, 10)]


class Letters:
    def __init__(self, *chunks: str) -> None:
        self.chunks = chunks

    def groups(self, seed: int, chunk: int) -> str:
        return self.chunks[chunk % len(self.chunks)]

    def batch(self, group: str) -> str:
        return group


@pytest.mark.parametrize("workers", [0, 2])
def test_positions_are_exact(workers: int) -> None:
    task = Letters("abc", "", "d", "ef")
    whole = list(itertools.islice(batches(task, 0, 0, workers), 14))
    assert "".join(group for _, group in whole) == "abcdefabcdefab"
    assert [p for p, _ in whole[:4]] == [1, 2, GROUPS, 3 * GROUPS]
    for i, (position, _) in enumerate(whole[:-1]):
        assert next(batches(task, 0, position)) == whole[i + 1]


def test_nothing_for_ever_is_an_error() -> None:
    with pytest.raises(InputError, match="no training question has an answer"):
        next(batches(Letters(""), 0, 0))
