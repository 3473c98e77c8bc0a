"""Training data in chunks: the examples of a chunk, and batches that can be resumed after any group of a chunk.

A chunk depends only on (seed, number of the chunk), so a position is the chunk and the number of its finished groups.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch.utils.data import DataLoader, Dataset

from core.errors import InputError

CHUNK_QUESTIONS = 96  # questions tokenised together and sorted by size
GROUPS = 10_000  # position = chunk * GROUPS + groups done; a chunk has fewer groups than that
MAX_EMPTY_CHUNKS = 20  # chunks in a row without a single group: there is nothing to train on
U = TypeVar("U")


def draw(sources: Sequence[tuple[Sequence[U], float]], seed: int, chunk: int, size: int = CHUNK_QUESTIONS) -> Iterator[U]:
    """The examples of a chunk.  Each (examples, share) source gives its share of `size`, at least one.

    No example is repeated within an epoch of its source.
    """
    total = sum(share for _, share in sources)
    for n, (examples, share) in enumerate(sources):
        count = max(1, round(size * share / total))
        shuffled, order = -1, list[int]()
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
    selected = sorted((examples[i] for i in order[part * size : (part + 1) * size]), key=length)
    return grouped(selected, fits, f"{seed}-{chunk}-order")


def grouped(examples: Iterable[U], fits: Callable[[list[U], U], bool], seed: str) -> list[list[U]]:
    """The examples in their order, in groups that are then shuffled.  A group ends when the next example doesn't fit."""
    groups: list[list[U]] = []
    for example in examples:
        if not groups or not fits(groups[-1], example):
            groups.append([])
        groups[-1].append(example)
    random.Random(seed).shuffle(groups)
    return groups


class Grouped(Protocol):
    """Training data in chunks that depend only on (seed, number of the chunk)."""

    def groups(self, seed: int, chunk: int) -> Sequence[Any]:
        """The content of each batch of the chunk."""
        ...

    def batch(self, group: Any) -> Any:
        """The tensors of one group."""
        ...


class _Chunks(Dataset[list[Any]]):
    def __init__(self, task: Grouped, seed: int) -> None:
        self.task, self.seed = task, seed

    def __getitem__(self, chunk: int) -> list[Any]:
        return [self.task.batch(group) for group in self.task.groups(self.seed, chunk)]


def batches(task: Grouped, seed: int, start: int, workers: int = 0) -> Iterator[tuple[int, Any]]:
    """Endless pairs (position to resume from after this batch, batch), from position `start`.

    `workers`: processes that make the chunks ahead of time, in the same order (0: none, this process makes each when it is needed).  A GPU waits
    for one process's tokenising.  Raises InputError after MAX_EMPTY_CHUNKS chunks without a batch.
    """
    first, finished = divmod(start, GROUPS)
    if workers:  # a chunk has dozens of tensors: as many file descriptors would soon be too many
        torch.multiprocessing.set_sharing_strategy("file_system")
    # a generator of its own: the order of a run does not depend on how often it was resumed
    loader: Any = DataLoader(
        _Chunks(task, seed),
        batch_size=None,
        sampler=itertools.count(first),  # type: ignore[arg-type]
        num_workers=workers,
        collate_fn=list,
        generator=torch.Generator(),
    )
    empty = 0
    for chunk, chunk_batches in zip(itertools.count(first), loader):
        empty = 0 if chunk_batches else empty + 1
        if empty == MAX_EMPTY_CHUNKS:
            raise InputError("no training question has an answer in its passages; check the training files")
        for n, batch in enumerate(chunk_batches[finished:], finished + 1):
            yield (chunk * GROUPS + n if n < len(chunk_batches) else (chunk + 1) * GROUPS), batch
        finished = 0
