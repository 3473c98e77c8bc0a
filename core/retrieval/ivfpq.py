"""IVF-PQ at any size: trained on a sample and filled a slice at a time, so that memory holds only the codes.

Source: Jégou, Douze & Schmid 2011, "Product Quantization for Nearest Neighbor Search", by FAISS.  The codes only find candidates: the stored
vectors score them (index.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.retrieval.gpus import code_bytes

ADD_ROWS = 65536  # vectors handed to FAISS at once
MAX_LISTS = 8192  # assigning a vector costs a comparison with each list: with a bound, the whole build is linear
TRAIN_ROWS_PER_LIST = 64  # k-means of FAISS wants 39 to 256 points a centroid
PQ_DIMENSIONS = 8  # of the vector in one code byte, about
MAX_PROBES = 256  # lists read for a question; of 21 million passages, 512 bring no more


def slices(vectors: NDArray[Any]) -> Iterator[NDArray[np.float32]]:
    for start in range(0, len(vectors), ADD_ROWS):
        yield np.ascontiguousarray(vectors[start : start + ADD_ROWS], np.float32)


def build(vectors: NDArray[Any], progress: Callable[[int, int], None]) -> Any:
    """The index of `vectors` (n, d), which are read a slice at a time."""
    import faiss

    n, d = vectors.shape
    lists = max(1, min(int(4 * math.sqrt(n)), n // 39, MAX_LISTS))
    codes = code_bytes(d, d / PQ_DIMENSIONS)
    index: Any = faiss.IndexIVFPQ(faiss.IndexFlatIP(d), d, lists, codes, 8, faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # otherwise FAISS warns on stdout
    rows = np.random.default_rng(0).permutation(n)[: max(lists * TRAIN_ROWS_PER_LIST, 39 * 256)]
    index.train(np.ascontiguousarray(vectors[np.sort(rows)], np.float32))
    for part in slices(vectors):
        index.add(part)
        progress(index.ntotal, n)
    return index


def write(index: Any, path: Path) -> None:
    import faiss

    library: Any = faiss  # its stubs lack the writer
    with disk.replacing(path, "what was done is kept") as draft, draft.open("wb") as file:
        # through our own file: FAISS does not check that its last bytes were written
        library.write_index(index, library.PyCallbackIOWriter(file.write))
