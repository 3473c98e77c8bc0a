"""The dense index: vectors in one memory-mapped file, a FAISS index over them, and a manifest that describes them.

Source: FAISS (Douze et al. 2024, https://github.com/facebookresearch/faiss).  `flat` needs no index file: FAISS searches the
mapped vectors in place.  `ivfpq` and `hnsw` find candidates, which are then scored exactly with the stored vectors, so a score
is always the cosine of question and passage, whatever the kind.  Opening an index maps its files and reads none of them whole.

Legend: n passages, d dimension, Q questions, k results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import IndexMismatchError
from core.models.encoders.sentence_encoder import Encoder, Vectors
from core.retrieval import ivfpq
from core.retrieval.corpus import read_facts
from core.retrieval.gpus import MAX_RESULTS, Spread, chosen_gpus, on_gpus

MANIFEST, VECTORS, HALVES = "manifest.json", "vectors.f32", "vectors.f16"
INDEX, PROGRESS = "index.faiss", "vectors.progress.json"
VectorDtype = Literal["float32", "float16"]  # the numbers in the file of the vectors
FORMAT = 3  # of the folder
KINDS = ("flat", "ivfpq", "hnsw")
SHARD_TEXTS = 2048  # texts encoded between two checkpoints
Encode = Callable[[Iterator[Sequence[str]], int], Iterator[Vectors]]  # (shards, how many) -> their vectors, in order
# candidates scored exactly for each result wanted: of 21 million passages, 20 of IVF-PQ bring recall@100 to 0.96, where 8 bring it to 0.89
EXACT_FACTOR = {"ivfpq": 20, "hnsw": 8}
APPROXIMATE_FROM = 256  # passages; with fewer, a scan is faster and a quantizer cannot be trained
HNSW_LINKS = 32


@dataclass(frozen=True, slots=True)
class IndexManifest:
    """A description of what an index was built from, checked whenever the index is loaded."""

    encoder: str
    dimension: int
    count: int
    kind: str
    digest: str  # of the passages
    faiss_version: str
    created: str  # ISO 8601, UTC
    format: int = FORMAT
    stored: str = "float32"  # the numbers of the vectors' file
    given: int = 0  # 1: the FAISS index came with the vectors, not built here

    def save(self, folder: Path) -> None:
        disk.write_text(folder / MANIFEST, json.dumps(asdict(self), indent=1))

    @classmethod
    def load(cls, folder: Path) -> IndexManifest:
        """Raises IndexMismatchError if it is damaged, FileNotFoundError if it is missing."""
        facts = read_facts(folder / MANIFEST)
        kinds = {f.name: int if f.type == "int" else str for f in fields(cls)}
        wrong = [n for n, kind in kinds.items() if not isinstance(facts.get(n), kind)]
        if wrong:
            raise IndexMismatchError(f"{folder / MANIFEST} lacks {', '.join(wrong)}; build the index again")
        return cls(**{n: facts[n] for n in kinds})


def check_manifest(manifest: IndexManifest, *, encoder: str, dimension: int, count: int, digest: str, name: str) -> None:
    """Raises IndexMismatchError that lists every difference and names the command that rebuilds the index."""
    import faiss

    differences = [
        f"{field}: the index has {actual}, {source} {expected}"
        for field, actual, expected, source in (
            ("format", manifest.format, FORMAT, "this version reads"),
            ("encoder", manifest.encoder, encoder, "the settings (AMBISCOPE_ENCODER) say"),
            ("dimension", manifest.dimension, dimension, "the encoder gives"),
            ("count", manifest.count, count, "the passages are"),
            ("digest", manifest.digest[:12], digest[:12], "the passages have"),
        )
        if actual != expected
    ]
    if manifest.kind not in KINDS:
        differences.append(f"kind: the index is '{manifest.kind}', known are {', '.join(KINDS)}")
    if _version(manifest.faiss_version) > _version(faiss.__version__):
        differences.append(
            f"faiss_version: the index was written by {manifest.faiss_version}, installed is {faiss.__version__}"
        )
    if differences:
        raise IndexMismatchError(
            f"the index of corpus '{name}' does not fit: {'; '.join(differences)}. "
            f"Run: python -m core index --passages FILE --name {name}"
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def write_vectors(
    folder: Path,
    texts: Callable[[int, int], Sequence[str]],
    count: int,
    encoder: Encoder,
    digest: str,
    progress: Callable[[int, int], None],
    dtype: VectorDtype = "float32",
    encode: Encode | None = None,
) -> int:
    """Encodes `count` texts into the vector file shard by shard, resuming where an earlier run was interrupted.

    `texts(start, stop)` gives the texts of a shard.  A shard counts once it is in `vectors.progress.json`; anything
    after it is truncated.  Space for all vectors is reserved first, so that a full disk is reported before anything is encoded.  Returns the
    number of vectors that already existed.  `encode`: another way to what `encoder` gives, such as several machines.  Raises OSError when the disk refuses.
    """
    path, state = folder / vectors_file(dtype), folder / PROGRESS
    row_bytes = np.dtype(dtype).itemsize * encoder.dimension
    key = progress_key(encoder, digest)
    resumed_at = finished = rows_done(folder, key, dtype)
    if not finished:
        state.unlink(missing_ok=True)  # it may count another file
    with path.open("r+b" if finished else "wb") as f:
        f.truncate(finished * row_bytes)
        disk.reserve(f, count * row_bytes)
        f.seek(finished * row_bytes)
        progress(finished, count)
        shards = [(start, min(start + SHARD_TEXTS, count)) for start in range(finished, count, SHARD_TEXTS)]
        shard_texts = (texts(*shard) for shard in shards)
        encoded = encode(shard_texts, len(shards)) if encode else (encoder.encode(batch, "passage") for batch in shard_texts)
        for (_, stop), vectors in zip(shards, encoded, strict=True):
            f.write(vectors.astype(dtype, copy=False).tobytes())
            f.flush()
            os.fsync(f.fileno())
            finished = stop
            disk.write_text(state, json.dumps({**key, "rows": finished}))
            progress(finished, count)
    return resumed_at


def kind_of(index: Any) -> str:
    """The kind of a FAISS index; empty for a kind that isn't used here."""
    import faiss

    kinds: dict[str, Any] = {"ivfpq": faiss.IndexIVFPQ, "hnsw": faiss.IndexHNSWFlat}
    return next((kind for kind, faiss_class in kinds.items() if isinstance(index, faiss_class)), "")


def vectors_file(dtype: str) -> str:
    return HALVES if dtype == "float16" else VECTORS


def progress_key(encoder: Encoder, digest: str) -> dict[str, str | int]:
    """Identifies the encoder and the passages of the vectors on disk.  Vectors of others can't be reused."""
    return {"encoder": encoder.name, "dimension": encoder.dimension, "digest": digest}


def rows_done(folder: Path, key: dict[str, str | int], dtype: VectorDtype) -> int:
    """The number of vectors that an interrupted build left."""
    try:
        state = read_facts(folder / PROGRESS)
        size = (folder / vectors_file(dtype)).stat().st_size
    except (IndexMismatchError, FileNotFoundError):
        return 0
    rows = state.get("rows")
    if not isinstance(rows, int) or any(state.get(k) != v for k, v in key.items()):
        return 0
    return rows if size >= rows * np.dtype(dtype).itemsize * int(key["dimension"]) else 0


def open_vectors(folder: Path, count: int, dimension: int, dtype: str = "float32") -> NDArray[Any]:
    """The stored vectors (n, d), memory-mapped.  Raises IndexMismatchError when the file has another size."""
    path = folder / vectors_file(dtype)
    expected = np.dtype(dtype).itemsize * count * dimension
    size = path.stat().st_size if path.exists() else 0
    if size != expected:
        raise IndexMismatchError(
            f"{path} has {size} bytes, {count} vectors of {dimension} dimensions need {expected}; build the index again"
        )
    if not count:
        return np.zeros((0, dimension), dtype=np.float32)
    return disk.mapped(path, dtype, (count, dimension))


def build_index(
    kind: str, vectors: NDArray[Any], path: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Writes the FAISS index of `vectors` (n, d).  Writes nothing for `flat`, or for fewer than APPROXIMATE_FROM passages.
    Raises StorageError."""
    import faiss

    path.unlink(missing_ok=True)
    if kind == "flat" or len(vectors) < APPROXIMATE_FROM:
        return
    n, d = vectors.shape
    index: Any
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(d, HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = 80
        for rows in ivfpq.slices(vectors):
            index.add(rows)
            progress(index.ntotal, n)
    else:
        index = ivfpq.build(vectors, progress)
    ivfpq.write(index, path)


class VectorIndex:
    """Finds the nearest passages by cosine.  Rows are those of the passage store."""

    def __init__(self, folder: Path, manifest: IndexManifest, device: str = "auto", spread: Spread = "replicate") -> None:
        """`device` and `spread`: AMBISCOPE_DEVICE and AMBISCOPE_INDEX_GPUS.

        Raises IndexMismatchError if the files do not match the manifest, InputError for a GPU that does not exist.
        """
        import faiss

        self.manifest = manifest
        self.vectors: NDArray[Any] = open_vectors(folder, manifest.count, manifest.dimension, manifest.stored)
        self._rows = disk.Rows(self.vectors)
        gpus = chosen_gpus(device, faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0)
        self._index: Any = None
        if manifest.kind != "flat" and manifest.count >= APPROXIMATE_FROM:
            self._index = self._read(folder / INDEX, map_it=not gpus)
        elif gpus and manifest.count:
            self._index = faiss.IndexFlatIP(manifest.dimension)
            for part in ivfpq.slices(self.vectors):
                self._index.add(part)
        self._gpu = on_gpus(self._index, gpus, spread) if self._index is not None else None

    @property
    def gpus(self) -> tuple[int, ...]:
        """The GPUs that hold the index."""
        return self._gpu.gpus if self._gpu is not None else ()

    def _read(self, path: Path, map_it: bool) -> Any:
        import faiss

        try:
            index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC if map_it else 0)
        except RuntimeError as e:
            raise IndexMismatchError(f"{path} is missing or damaged ({str(e)[-150:]}); build the index again") from e
        if (kind_of(index), index.ntotal, index.d) != (self.manifest.kind, self.manifest.count, self.manifest.dimension):
            raise IndexMismatchError(
                f"{path} is a {type(index).__name__} of {index.ntotal} vectors of {index.d} dimensions; the manifest says "
                f"{self.manifest.kind}, {self.manifest.count} and {self.manifest.dimension}: build the index again"
            )
        if self.manifest.kind == "ivfpq":
            index.nprobe = max(1, min(index.nlist // 8, ivfpq.MAX_PROBES))
        return index

    def search(self, queries: Vectors, k: int) -> list[tuple[NDArray[np.int64], Vectors]]:
        """Rows and cosines of the k best passages for each query (Q, d), best first; fewer if the corpus is smaller."""
        import faiss

        n = self.manifest.count
        if not n or not len(queries):
            return [(np.zeros(0, np.int64), np.zeros(0, np.float32)) for _ in queries]
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        kind = self.manifest.kind
        candidates = min(n, k if kind == "flat" or self._index is None else max(64, k * EXACT_FACTOR[kind]))
        scan = self._index is None or candidates == n  # all are requested: an approximate index would miss some
        if self._gpu is not None and candidates <= MAX_RESULTS and not scan:
            scores, rows = self._gpu.search(queries, candidates)  # (Q, candidates)
        elif scan or kind == "flat":
            scores, rows = self._scan(queries, candidates)
        elif kind == "hnsw":  # set for this search: the index's value is shared by all threads
            library: Any = faiss  # its stubs lack the name
            parameters = library.SearchParametersHNSW(efSearch=max(64, candidates))
            scores, rows = self._index.search(queries, candidates, params=parameters)
        else:
            scores, rows = self._index.search(queries, candidates)
        results = []
        for query, query_rows, query_scores in zip(queries, rows, scores, strict=True):
            is_hit = query_rows >= 0  # FAISS pads with -1 where it found fewer
            hit_rows, hit_scores = query_rows[is_hit], query_scores[is_hit]
            if kind != "flat" and not scan:
                hit_scores = self.similarities(query, hit_rows)
            order = np.lexsort((hit_rows, -hit_scores))[:k]  # ties by row: the same list on every machine
            results.append((hit_rows[order].astype(np.int64), hit_scores[order].astype(np.float32)))
        return results

    def _scan(self, queries: Vectors, k: int) -> tuple[Vectors, NDArray[np.int64]]:
        """Scores and rows (Q, k) of the best among all vectors."""
        import faiss

        if self.vectors.dtype == np.float32:
            return faiss.knn(queries, self.vectors, k, faiss.METRIC_INNER_PRODUCT)
        best: Any = faiss.ResultHeap(len(queries), k, keep_max=True)
        for number, part in enumerate(ivfpq.slices(self.vectors)):
            scores, rows = faiss.knn(queries, part, min(k, len(part)), faiss.METRIC_INNER_PRODUCT)
            best.add_result(scores, rows + number * ivfpq.ADD_ROWS)
        best.finalize()
        return best.D, best.I

    def similarities(self, query: Vectors, rows: NDArray[np.int64]) -> Vectors:
        """Cosines of a query (d,) with the stored vectors of `rows`."""
        cosines: Vectors = self._rows[rows].astype(np.float32, copy=False) @ query
        return cosines
