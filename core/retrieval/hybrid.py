"""Dense, BM25 and hybrid search over one corpus.

Hybrid is the convex combination of normalised scores (TM2C2: Bruch, Gai & Ingber 2023, "An Analysis of Fusion Functions for
Hybrid Retrieval", https://arxiv.org/abs/2210.11934, which finds it above reciprocal-rank fusion and less sensitive to its
parameter).  Each score is scaled between its lowest possible value (-1 for a cosine, 0 for BM25) and the best of the query:

    score = (1 - BM25_WEIGHT) * (cosine + 1) / (best cosine + 1) + BM25_WEIGHT * bm25 / best bm25

Unlike a fusion of two cut lists, both scores are known here for every candidate: cosines by reading the stored vectors, BM25
by asking for their rows; no passage is penalised for missing one list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.models.encoders.sentence_encoder import Vectors
from core.retrieval.index import VectorIndex
from core.retrieval.words import WordIndex, WordMatches

Mode = Literal["dense", "bm25", "hybrid"]
BM25_WEIGHT = 0.2  # 1 - alpha of the paper's section 4
MIN_CANDIDATES = 100  # of each list, at least
PER_RESULT = 4  # candidates of each list for each result wanted

Ranking = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]  # rows, scores, cosines; best first


def checked_mode(mode: str) -> Mode:
    if mode not in get_args(Mode):
        raise InputError(f"retriever '{mode}' is unknown; use one of {', '.join(get_args(Mode))}")
    return mode  # type: ignore[return-value]


def search(
    index: VectorIndex, bm25: WordIndex | None, queries: Sequence[str], vectors: Vectors, k: int, mode: Mode
) -> list[Ranking]:
    """Rows, scores and cosines of the k best passages for each query, whose vectors are (Q, d).  Dense search doesn't use
    `bm25`."""
    if mode == "dense" or bm25 is None:
        return [(rows, cosines, cosines) for rows, cosines in index.search(vectors, k)]
    if mode == "bm25":
        by_words = [(vector, *best_by_words(bm25, query, k)) for query, vector in zip(queries, vectors, strict=True)]
        return [(rows, scores, index.similarities(vector, rows)) for vector, rows, scores in by_words]
    candidates = max(MIN_CANDIDATES, PER_RESULT * k)
    return [
        _fused(index, bm25.search(query), vector, dense, k, candidates)
        for query, vector, dense in zip(queries, vectors, index.search(vectors, candidates), strict=True)
    ]


def best_by_words(bm25: WordIndex, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows and scores of the k best passages by words alone; empty if no word of the query matches."""
    words = bm25.search(query)
    return words.best(k) if words is not None else (np.zeros(0, np.int64), np.zeros(0, np.float32))


def _fused(
    index: VectorIndex,
    words: WordMatches | None,
    vector: Vectors,
    dense: tuple[NDArray[np.int64], Vectors],
    k: int,
    candidates: int,
) -> Ranking:
    if words is None:  # no word matches: dense retrieval only
        rows, cosines = dense
        return rows[:k], cosines[:k], cosines[:k]
    by_words, best = words.best(candidates)
    rows = np.union1d(dense[0], by_words)
    cosines = index.similarities(vector, rows)
    fused = (1 - BM25_WEIGHT) * (cosines + 1) / max(1e-6, float(cosines.max(initial=-1)) + 1)
    fused += BM25_WEIGHT * words.scores(rows) / max(1e-6, float(best.max(initial=0)))
    order = np.lexsort((rows, -fused))[:k]
    return rows[order], fused[order].astype(np.float32), cosines[order]
