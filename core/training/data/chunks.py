"""Training data in chunks: which examples a chunk holds, and batches that can be resumed after any group of a chunk.

A chunk depends only on (seed, number of the chunk), so a position is the chunk and the number of its groups done.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from core.errors import InputError
from core.training.data.examples import MultiExample

CHUNK = 96  # questions tokenised together and sorted by size
GROUPS = 10_000  # position = chunk * GROUPS + groups done; a chunk has fewer groups than that
EMPTY = 20  # chunks in a row without a single group: there is nothing to train on
T = TypeVar("T")
U = TypeVar("U")


def draw(
    sources: Sequence[tuple[Sequence[MultiExample], float]], seed: int, chunk: int, size: int = CHUNK
) -> Iterator[MultiExample]:
    """The examples of a chunk.  Each (examples, share) source gives its share of `size`, at least one.

    No example is repeated within an epoch of its source.
    """
    total = sum(share for _, share in sources)
    for n, (examples, share) in enumerate(sources):
        count = max(1, round(size * share / total))
        shuffled, order = -1, list(range(len(examples)))
        for i in range(chunk * count, (chunk + 1) * count):
            epoch, k = divmod(i, len(examples))
            if epoch != shuffled:
                shuffled, order = epoch, list(range(len(examples)))
                random.Random(f"{seed}-{n}-{epoch}").shuffle(order)
            yield examples[order[k]]


def like_with_like(
    examples: Sequence[U], size: int, seed: int, chunk: int, length: Callable[[U], float], fits: Callable[[list[U], U], bool]
) -> list[list[U]]:
    """A chunk of `size` examples of its epoch, in groups of similar `length`, the groups in random order.

    `fits(group, example)`: whether the group can take the example.
    """
    epoch, part = divmod(chunk, max(1, len(examples) // size))
    order = list(range(len(examples)))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    picked = sorted((examples[i] for i in order[part * size : (part + 1) * size]), key=length)
    groups: list[list[U]] = [[]]
    for example in picked:
        if groups[-1] and not fits(groups[-1], example):
            groups.append([])
        groups[-1].append(example)
    random.Random(f"{seed}-{chunk}-order").shuffle(groups)
    return groups


def stream(groups_of: Callable[[int], Sequence[T]], start: int) -> Iterator[tuple[int, T]]:
    """Endless pairs (position to resume from after this group, group), from position `start`.

    `groups_of(chunk)`: the groups of a chunk.  Raises InputError after EMPTY chunks without a group.
    """
    chunk, done = divmod(start, GROUPS)
    empty = 0
    while True:
        groups = groups_of(chunk)
        empty = 0 if groups else empty + 1
        if empty == EMPTY:
            raise InputError("no training question has an answer in its passages; check the training files")
        for n, group in enumerate(groups[done:], done + 1):
            yield (chunk * GROUPS + n if n < len(groups) else (chunk + 1) * GROUPS), group
        chunk, done = chunk + 1, 0
