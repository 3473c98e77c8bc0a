"""Vectors that were computed elsewhere, as `.npy` or FAISS files. Every row is checked and stored at the row of its
passage."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import FormatError, IndexMismatchError, InputError
from core.models.encoders.sentence_encoder import Encoder, passage_text
from core.retrieval import index
from core.retrieval.corpus import PassageStore
from core.retrieval.readers.folders import by_number
from core.retrieval.readers.lines import plain
from core.text import listed

BLOCK_ROWS = 8192  # of a block
COMPARED_PASSAGES = 16  # passages encoded again, to see that the vectors are theirs
FLOATS = ("float16", "float32", "float64")


class VectorBlock(NamedTuple):
    ids: Sequence[str] | None  # None: the file has none
    vectors: NDArray[Any]  # (b, d)


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """Files of vectors in the order of their passages, or with ids."""

    files: tuple[Path, ...]
    ids: Path | None = None  # lines of text, or a JSON list: the ids of all rows


def files_of(names: Iterable[str | Path]) -> tuple[Path, ...]:
    """The given files and those that match patterns (`shard_*.npy`), in the order of their numbers.

    Raises InputError for a pattern or name without a file, and for a file of another kind.
    """
    files: list[Path] = []
    for name in map(Path, names):
        if has_magic(str(name)) and not name.exists():
            matches = [p for p in Path(name.anchor or ".").glob(str(name.relative_to(name.anchor))) if p.is_file()]
            if not matches:
                raise InputError(f"{name}: no file has such a name")
            files += matches
        elif not name.is_file():
            raise InputError(f"{name}: there is no such file; give a file of vectors: {', '.join(KINDS)}")
        else:
            files.append(name)
    if unknown := next((path for path in files if path.suffix.lower() not in KINDS), None):
        raise InputError(
            f"{unknown.name}: vectors are read from {' and '.join(KINDS)} files; where these were made, save the vectors with "
            "numpy.save and the ids as lines of text, then give --vectors FILE.npy --ids FILE.txt"
        )
    return tuple(sorted(dict.fromkeys(files), key=by_number))


def _npy(path: Path) -> Iterator[VectorBlock]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as e:
        raise FormatError(f"not a complete .npy file of numbers ({e}); copy it again", file=path.name) from e
    if array.ndim != 2 or str(array.dtype) not in FLOATS:
        raise FormatError(
            f"an array of the shape {array.shape} and the type {array.dtype}; expected a row of floats for each passage "
            f"({', '.join(FLOATS)})",
            file=path.name,
        )
    for start in range(0, len(array), BLOCK_ROWS):
        yield VectorBlock(None, array[start : start + BLOCK_ROWS])


def _faiss(path: Path) -> Iterator[VectorBlock]:
    """The vectors in a finished index, decoded from its codes if it is quantised."""
    import faiss

    outer: Any = _read_index(path)
    index, ids = outer, None
    if isinstance(outer, faiss.IndexIDMap):
        ids = faiss.vector_to_array(outer.id_map)
        index = faiss.downcast_index(outer.index)  # belongs to `outer`, which has to live as long
    for start in range(0, index.ntotal, BLOCK_ROWS):
        size = min(BLOCK_ROWS, index.ntotal - start)
        try:
            if isinstance(index, faiss.IndexIVF) and not start:
                index.make_direct_map()
            vectors = index.reconstruct_batch(np.arange(start, start + size))
        except RuntimeError as e:
            kind = type(index).__name__
            raise InputError(
                f"{path.name}: no vectors can be read out of this {kind}; give the vectors that it was made of"
            ) from e
        yield VectorBlock(None if ids is None else [str(i) for i in ids[start : start + size]], vectors)


def _read_index(path: Path) -> Any:
    """A FAISS index, memory-mapped if its kind allows it.  Raises FormatError if it is damaged or cut short."""
    import faiss

    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except RuntimeError as e:
        reason = " ".join(str(e).split())[-150:]
        raise FormatError(f"not a complete FAISS index ({reason}); copy it again", file=path.name) from e


KINDS: dict[str, Callable[[Path], Iterator[VectorBlock]]] = {".npy": _npy, ".faiss": _faiss}


def _listed_ids(path: Path) -> Iterator[str]:
    """The ids in a file: one a line, or a JSON list.  Raises FormatError, InputError."""
    try:
        if path.suffix.lower() == ".json":
            ids = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(ids, list):
                raise FormatError("expected a JSON list of ids", file=path.name)
            yield from (str(plain(i)) for i in ids)
            return
        with path.open(encoding="utf-8") as lines:
            yield from (re.sub(r"\r?\n$", "", line) for line in lines)
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror or e}); give the path of an existing file") from e
    except ValueError as e:
        raise FormatError(f"not a list of ids ({e}); write an id a line", file=path.name) from e


def import_vectors(
    folder: Path,
    source: VectorFiles,
    source_digest: str,
    store: PassageStore,
    encoder: Encoder,
    dtype: index.VectorDtype,
    progress: Callable[[int, int], None],
) -> None:
    """Writes the vectors of all passages in the order of the store, at unit length.  A second call with the same
    `source_digest` (a digest of the files) finds them finished.

    Raises InputError for a row that is not finite, zero or of another dimension, for an id that is unknown, missing or there twice, for another
    number of rows than passages, and for vectors of another encoder; FormatError for a damaged file; OSError.
    """
    key = index.progress_key(encoder, store.digest) | {"given": source_digest}
    if index.rows_done(folder, key, dtype) == len(store):
        return
    (folder / index.PROGRESS).unlink(missing_ok=True)
    target = disk.new_mapped(folder / index.vectors_file(dtype), dtype, (len(store), encoder.dimension))
    assignment = _RowAssignment(store)
    ids_of_rows = _listed_ids(source.ids) if source.ids else None
    for file in source.files:
        row = 0
        for block in KINDS[file.suffix.lower()](file):
            vectors = _checked(file, row, block.vectors, encoder)
            ids = _next(ids_of_rows, len(vectors), source, file) if ids_of_rows else block.ids
            target[assignment.assign(ids, len(vectors), file, row)] = vectors
            row += len(vectors)
            progress(assignment.count, len(store))
    if ids_of_rows is not None and next(ids_of_rows, None) is not None:
        raise InputError(
            f"{source.ids} has more ids than the {assignment.count} rows of the vectors; give the ids of these files"
        )
    assignment.check_complete([f.name for f in source.files])
    _compare(target, store, encoder)
    target.flush()
    disk.write_text(folder / index.PROGRESS, json.dumps({**key, "rows": len(store)}))


def _next(ids_of_rows: Iterator[str], count: int, source: VectorFiles, file: Path) -> list[str]:
    ids = list(islice(ids_of_rows, count))
    if len(ids) < count:
        raise InputError(
            f"{source.ids} has fewer ids than the vectors have rows: it ends within {file.name}; give one id a row"
        )
    return ids


def _checked(file: Path, row: int, vectors: NDArray[Any], encoder: Encoder) -> NDArray[np.float32]:
    """The vectors (b, d) at unit length.  Raises InputError."""
    if vectors.shape[1] != encoder.dimension:
        raise InputError(
            f"{file.name}: vectors of {vectors.shape[1]} dimensions, and the encoder '{encoder.name}' that reads the questions gives "
            f"{encoder.dimension}; set AMBISCOPE_ENCODER to the encoder that made them"
        )
    floats: NDArray[np.float32] = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(floats, axis=1, keepdims=True)
    wrong = np.flatnonzero(~np.isfinite(lengths) | (lengths < 1e-12))
    if len(wrong):
        problem = "is zero" if lengths[wrong[0], 0] < 1e-12 else "has a number that is NaN or infinite"
        raise InputError(f"{file.name}, row {row + int(wrong[0]) + 1}: the vector {problem}; compute this row again")
    unit: NDArray[np.float32] = floats / lengths
    return unit


class _RowAssignment:
    """The row of each vector's passage."""

    def __init__(self, store: PassageStore) -> None:
        self._store, self._seen, self.count = store, np.zeros(len(store), bool), 0

    def assign(self, ids: Sequence[str] | None, rows: int, file: Path, row: int) -> NDArray[np.int64] | slice:
        if ids is None:
            if self.count + rows > len(self._store):
                raise InputError(f"{file.name}, row {row + 1}: more vectors than the {self._passage_count()}; {_WITH_IDS}")
            assigned: NDArray[np.int64] | slice = slice(self.count, self.count + rows)
            if self._seen[assigned].any():
                raise InputError(f"{file.name} has no ids, and files before it have; give the ids of all with --ids")
            self._seen[assigned] = True
        else:
            assigned = np.fromiter(
                (self._row(i, self.count + n, f"{file.name}, row {row + n + 1}") for n, i in enumerate(ids)), np.int64, len(ids)
            )
        self.count += rows
        return assigned

    def _row(self, passage_id: str, expected: int, place: str) -> int:
        in_order = expected < len(self._store) and self._store[expected].id == passage_id  # as in most files
        row = expected if in_order else self._store.row_of(passage_id)
        if row is None:
            raise InputError(
                f"{place}: no passage has the id '{passage_id[:80]}'; give the passages that these vectors were made of"
            )
        if self._seen[row]:
            raise InputError(f"{place}: id '{passage_id[:80]}' is there twice; leave one of its vectors out")
        self._seen[row] = True
        return row

    def _passage_count(self) -> str:
        rejected = sum(file["rejected"] for file in self._store.facts["files"])
        return f"{len(self._store)} passages" + (f" ({rejected} rows were rejected)" if rejected else "")

    def check_complete(self, files: list[str]) -> None:
        """Raises InputError if a passage has no vector."""
        missing = np.flatnonzero(~self._seen)
        if not len(missing):
            return
        ids = ", ".join(f"'{self._store[int(i)].id[:80]}'" for i in missing[:3])
        raise InputError(
            f"{', '.join(files[:3])}: {self.count} vectors for {self._passage_count()}; {listed(len(missing), 'passage')} without one, first {ids}: "
            f"is a shard missing?  {_WITH_IDS}"
        )


_WITH_IDS = "rows without ids have to be those of the passages, in their order; give --ids where they are not"


def _compare(vectors: NDArray[Any], store: PassageStore, encoder: Encoder) -> None:
    """Raises InputError unless most of the compared passages, when encoded here, are nearest to their own vectors."""
    rows = np.unique(np.linspace(0, len(store) - 1, COMPARED_PASSAGES).astype(int))
    texts = [passage_text(store[int(row)]) for row in rows]
    if len(set(texts)) < 4:  # too few to tell
        return
    references = np.asarray(vectors[rows], np.float32)
    cosines = encoder.encode(texts, "passage") @ references.T
    is_nearest = np.diagonal(cosines) >= cosines.max(axis=1) - 1e-3
    if is_nearest.mean() <= 0.5:
        raise InputError(
            f"these are not the vectors of these passages by the encoder '{encoder.name}': of {len(rows)} passages encoded again, "
            f"{int(is_nearest.sum())} are nearest to their own vector.  Set AMBISCOPE_ENCODER to the encoder that made them, or check their order"
        )


def copy_index(source: VectorFiles, folder: Path, count: int, dimension: int) -> str:
    """Copies a finished FAISS index that can be searched as it is, and returns its kind; empty if one has to be built from its
    vectors."""
    import faiss

    if len(source.files) != 1 or source.ids or source.files[0].suffix.lower() != ".faiss" or count < index.APPROXIMATE_FROM:
        return ""
    loaded = _read_index(source.files[0])
    kind = index.kind_of(loaded)
    if not kind or loaded.metric_type != faiss.METRIC_INNER_PRODUCT:
        return ""
    if (loaded.ntotal, loaded.d) != (count, dimension):  # its vectors were checked before
        raise IndexMismatchError(f"{source.files[0]} was changed while it was read; give it again")
    with disk.replacing(folder / index.INDEX) as draft:
        shutil.copyfile(source.files[0], draft)
    return kind
