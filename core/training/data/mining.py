"""Context passages for training questions: BM25 neighbours from a passage file, with or without an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer

from core import disk
from core.text import mentions
from core.training.data.examples import Titled


class Miner:
    """BM25 over passages in memory.  This is for training only; core.retrieval searches the corpora that people use.

    `cache`: folder for the neighbours, under a digest of what they depend on.
    """

    def __init__(self, passages: Sequence[Titled], cache: Path | None = None) -> None:
        self.passages, self.cache = list(passages), cache
        self._stemmer = Stemmer.Stemmer("english")

    @cached_property
    def _index(self) -> Any:
        """Built when something isn't in the cache yet, because it takes a minute for 65,000 passages."""
        texts = [f"{title} {text}" for title, text in self.passages]
        index = bm25s.BM25()
        index.index(bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False), show_progress=False)
        return index

    def neighbours(self, questions: Sequence[str], k: int) -> np.ndarray:
        """Indices (questions, at most k) of passages, best first."""
        if not self.passages or not len(questions):
            return np.zeros((len(questions), 0), np.int32)
        file = self.cache / f"neighbours-{self._key(questions, k)}.npy" if self.cache else None
        if file and file.exists():
            return np.asarray(np.load(file))
        tokens = bm25s.tokenize(list(questions), stopwords="en", stemmer=self._stemmer, show_progress=False)
        ids, _ = self._index.retrieve(tokens, k=min(k, len(self.passages)), show_progress=False, n_threads=1)
        indexes = np.asarray(ids).astype(np.int32)
        if file:
            with disk.replacing(file) as draft, draft.open("wb") as out:  # several processes may make the same file
                np.save(out, indexes)
        return indexes

    def _key(self, questions: Sequence[str], k: int) -> str:
        """A digest of everything that the neighbours depend on, in 16 hexadecimal digits."""
        digest = sha256(json.dumps([list(questions), k]).encode())
        for passage in self.passages:  # one by one, to limit memory
            digest.update(json.dumps(passage).encode())
        return digest.hexdigest()[:16]

    def without(self, neighbours: np.ndarray, answers: Sequence[str], excluded: Sequence[str], limit: int) -> list[Titled]:
        """The first `limit` neighbours that hold none of the answers and are not among the `excluded` texts."""
        heads = {text[:60] for text in excluded}
        passages = (self.passages[int(i)] for i in neighbours)
        return list(islice((p for p in passages if p[1][:60] not in heads and not mentions(" ".join(p), answers)), limit))
