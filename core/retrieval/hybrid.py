"""Dense, BM25 and hybrid search over one corpus.

Hybrid is the convex combination of normalised scores (TM2C2: Bruch, Gai & Ingber 2023, "An Analysis of Fusion Functions for
Hybrid Retrieval", https://arxiv.org/abs/2210.11934, which finds it above reciprocal-rank fusion and less sensitive to its
parameter).  Each score is scaled between its lowest possible value (-1 for a cosine, 0 for BM25) and the best of the query:

    score = DENSE_WEIGHT * (cosine + 1) / (best cosine + 1) + (1 - DENSE_WEIGHT) * bm25 / best bm25

Unlike a fusion of two cut lists, both scores are known here for every candidate: cosines by reading the stored vectors, BM25
from its full score vector; no passage is penalised for missing one list.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.retrieval.bm25 import Bm25Index, best
from core.retrieval.encoder import Vectors
from core.retrieval.index import VectorIndex

Mode = Literal["dense", "bm25", "hybrid"]
DENSE_WEIGHT = 0.8  # alpha of the paper's section 4
CANDIDATES = 100  # of each list, at least
PER_RESULT = 4  # candidates of each list for each result wanted

Found = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]  # rows, scores, cosines; best first


def checked_mode(mode: str) -> Mode:
    if mode not in get_args(Mode):
        raise InputError(f"retriever '{mode}' is unknown; use one of {', '.join(get_args(Mode))}")
    return mode  # type: ignore[return-value]


def search(index: VectorIndex, bm25: Bm25Index | None, query: str, vector: Vectors, k: int, mode: Mode) -> Found:
    """Rows, scores and cosines of the k best passages for a query and its vector (d,); `bm25` is not read when dense."""
    if mode == "dense" or bm25 is None:
        (rows, cosines), *_ = index.search(vector[None], k)
        return rows, cosines, cosines
    words = bm25.scores(query)
    if mode == "bm25":
        rows = best(words, k) if words is not None else np.zeros(0, np.int64)
        scores = words[rows] if words is not None else np.zeros(0, np.float32)
        return rows, scores, index.similarities(vector, rows)
    wanted = max(CANDIDATES, PER_RESULT * k)
    (dense, cosines), *_ = index.search(vector[None], wanted)
    if words is None:  # no word to match: what remains is dense retrieval
        return dense[:k], cosines[:k], cosines[:k]
    rows = np.union1d(dense, best(words, wanted))
    cosines = index.similarities(vector, rows)
    fused = DENSE_WEIGHT * (cosines + 1) / max(1e-6, float(cosines.max(initial=-1)) + 1)
    fused += (1 - DENSE_WEIGHT) * words[rows] / max(1e-6, float(words.max(initial=0)))
    order = np.lexsort((rows, -fused))[:k]
    return rows[order], fused[order].astype(np.float32), cosines[order]
