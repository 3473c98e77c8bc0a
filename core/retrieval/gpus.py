"""FAISS on GPUs: device selection, replicas or shards, and one search at a time.

Source: FAISS (https://github.com/facebookresearch/faiss/wiki/Faiss-on-the-GPU).  A GPU index is not safe to search from two threads, because they
would share its scratch memory; an IVF-PQ index runs on a GPU only with certain code lengths, the longer ones with lookup tables in float16.
"""

from __future__ import annotations

import logging
import threading
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.models.encoders.sentence_encoder import Vectors

Spread = Literal["replicate", "shard", "one"]
CODE_BYTES = (1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96)  # code lengths of FAISS's IVF-PQ kernels
MAX_RESULTS = 2048  # of one search

_log = logging.getLogger(__name__)


def chosen_gpus(device: str, available: int) -> tuple[int, ...]:
    """The GPUs that FAISS may use under `AMBISCOPE_DEVICE`: all `available` ones for auto and cuda, one for cuda:1, else none.

    Raises InputError for a number that does not exist, if there are any GPUs.
    """
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cuda") or not available:
        return ()
    if not number:
        return tuple(range(available))
    if not number.isdecimal() or int(number) >= available:
        last = f"cuda:{available - 1}"
        raise InputError(
            f"AMBISCOPE_DEVICE is '{device}', and FAISS finds {available} GPU(s); use auto, cpu, or cuda:0 to {last}"
        )
    return (int(number),)


def code_bytes(dimension: int, min_bytes: float) -> int:
    """The shortest code of at least `min_bytes` bytes that divides `dimension` evenly and is supported on GPUs, or the longest."""
    sizes = [size for size in CODE_BYTES if dimension % size == 0]
    return next((size for size in sizes if size >= min_bytes), sizes[-1])


class GpuIndex:
    """A FAISS index (flat or IVF-PQ) on one or several GPUs; thread-safe.

    Once the GPU's memory is too small for a search, the CPU index is used from then on, with a log line.
    """

    def __init__(self, index: Any, gpus: tuple[int, ...], spread: Spread) -> None:
        """`index` also stays on the CPU.  Raises RuntimeError if FAISS cannot copy it."""
        import faiss

        gpus = gpus[:1] if spread == "one" else gpus
        quantised = isinstance(index, faiss.IndexIVFPQ)
        library: Any = faiss  # the CPU build lacks these names
        options = library.GpuMultipleClonerOptions()
        options.shard = spread == "shard"
        options.useFloat16 = quantised  # the lookup tables; of a flat index it would be the vectors themselves
        self._resources = [library.StandardGpuResources() for _ in gpus]  # must live as long as the index
        self._cpu, self.gpus = index, gpus
        self._gpu: Any = library.index_cpu_to_gpu_multiple_py(self._resources, index, options, list(gpus))
        self._lock = threading.Lock()

    def search(self, queries: Vectors, k: int) -> tuple[Vectors, NDArray[np.int64]]:
        """Scores and rows (Q, k), like FAISS's own search."""
        with self._lock:
            try:
                if self._gpu is not None:
                    return self._gpu.search(queries, k)
            except RuntimeError as error:
                if not _is_memory(error):
                    raise
                _log.warning("the GPU's memory is too small for a search: the index is searched on the CPU from now on")
                self._gpu, self._resources = None, []
        return self._cpu.search(queries, k)


def on_gpus(index: Any, gpus: tuple[int, ...], spread: Spread) -> GpuIndex | None:
    """`index` on these GPUs; None if it stays on the CPU, with a log line that says why."""
    import faiss

    if not gpus:
        return None
    if isinstance(index, faiss.IndexHNSW):
        reason = "FAISS has no HNSW index for GPUs"
    elif isinstance(index, faiss.IndexIVFPQ) and index.pq.code_size not in CODE_BYTES:
        reason = f"its codes have {index.pq.code_size} bytes, GPUs know {', '.join(map(str, CODE_BYTES))}: build it again"
    else:
        try:
            return GpuIndex(index, gpus, spread)
        except RuntimeError as error:
            problem = "their memory is too small" if _is_memory(error) else str(error).splitlines()[-1][-200:]
            reason = f"it cannot be copied to the GPUs ({problem})"
    _log.warning("the index is searched on the CPU: %s", reason)
    return None


def _is_memory(error: RuntimeError) -> bool:
    text = str(error).lower()
    return "out of memory" in text or "cudamalloc" in text or "alloc fail" in text
