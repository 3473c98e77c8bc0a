"""What every BM25 index gives, and which one a corpus has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

ARRAYS, TANTIVY = "bm25", "words"  # folders of a corpus; it has one of them


class Matches(Protocol):
    """The passages that share a word with one query."""

    def best(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and scores above 0 of the k best, best first, ties by row."""
        ...

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The scores of given rows; 0 for those that share no word."""
        ...


class WordIndex(Protocol):
    """Thread-safe."""

    def knows(self, word: str) -> bool:
        """True if a passage has the word, or if it is a stop word."""
        ...

    def search(self, query: str) -> Matches | None:
        """None if no word of the query is in the corpus (an empty query, only stop words)."""
        ...


def built(folder: Path) -> bool:
    return any((folder / name).exists() for name in (ARRAYS, TANTIVY))


def build_words(folder: Path, texts: Iterable[str], count: int, large: bool, progress: Callable[[int, int], None]) -> None:
    """Writes the index of `count` texts into the corpus, atomically.  Raises OSError, StorageError."""
    if large:
        from core.retrieval.words import tantivy_index

        tantivy_index.build(texts, count, folder / TANTIVY, progress)
    else:
        from core.retrieval.words import bm25

        bm25.build(texts, count, folder / ARRAYS, progress)


def open_words(folder: Path, count: int) -> WordIndex:
    """The index that the corpus was built with, whatever the settings say now.  Raises IndexMismatchError."""
    if (folder / TANTIVY).exists():
        from core.retrieval.words.tantivy_index import TantivyIndex

        return TantivyIndex(folder / TANTIVY, count)
    from core.retrieval.words.bm25 import Bm25Index

    return Bm25Index(folder / ARRAYS, count)
