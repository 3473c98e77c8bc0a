"""Files of vectors -> blocks of ids and rows: a record for each kind of file in `KINDS`.  No file is read whole, but for DPR's pickles."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.errors import FormatError, InputError
from core.retrieval.readers.folders import by_number
from core.retrieval.readers.lines import DEFAULT_COLUMNS, Columns, plain
from core.retrieval.vectors import dpr

ROWS = 8192  # of a block
COLUMNS = ("vector", "vectors", "embedding", "embeddings", "emb")
FLOATS = ("float16", "float32", "float64")


class Block(NamedTuple):
    ids: Sequence[str] | None  # None: the file has none
    vectors: NDArray[Any]  # (b, d)


@dataclass(frozen=True, slots=True)
class Given:
    """Vectors as a person gives them: files in the order of their passages, or with ids."""

    files: tuple[Path, ...]
    ids: Path | None = None  # lines of text, or a JSON list: the ids of all rows
    column: str = ""  # of Parquet, or the tensor's name
    columns: Columns = DEFAULT_COLUMNS


def files_of(names: Iterable[str | Path]) -> tuple[Path, ...]:
    """Files and patterns (`shard_*.npy`), in the order of their numbers.  Raises InputError for a pattern or name without a file."""
    found: list[Path] = []
    for name in map(Path, names):
        if has_magic(str(name)) and not name.exists():
            inside = [p for p in Path(name.anchor or ".").glob(str(name.relative_to(name.anchor))) if p.is_file()]
            if not inside:
                raise InputError(f"{name}: no file has such a name")
            found += inside
        elif not name.is_file():
            raise InputError(f"{name}: there is no such file; give a file of vectors: {', '.join(KINDS)}")
        else:
            found.append(name)
    return tuple(sorted(dict.fromkeys(found), key=by_number))


# ---------------------------------------------------------------- one function a kind of file


def _table(path: Path, array: Any) -> None:
    """Raises FormatError unless the array is (n, d) floats."""
    if len(array.shape) != 2 or str(array.dtype) not in FLOATS:
        raise FormatError(
            f"an array of the shape {tuple(array.shape)} and the type {array.dtype}; expected a row of floats for each passage "
            f"({', '.join(FLOATS)})",
            file=path.name,
        )


def _npy(path: Path, given: Given) -> Iterator[Block]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as e:
        raise FormatError(f"not a complete .npy file of numbers ({e}); copy it again", file=path.name) from e
    _table(path, array)
    for start in range(0, len(array), ROWS):
        yield Block(None, array[start : start + ROWS])


def _safetensors(path: Path, given: Given) -> Iterator[Block]:
    """One tensor of vectors, and perhaps a tensor `ids` of whole numbers."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            tables = [name for name, part in parts.items() if len(part.get_shape()) == 2]
            name = given.column or (tables[0] if len(tables) == 1 else next((c for c in COLUMNS if c in tables), ""))
            if name not in parts:
                raise FormatError(
                    f"it has the tensors {', '.join(parts) or 'none'}; name the one of the vectors with --vector-column",
                    file=path.name,
                )
            numbers = next(
                (parts[c] for c in (*given.columns.id, "ids") if c in parts and len(parts[c].get_shape()) == 1), None
            )
            if parts[name].get_dtype() not in ("F16", "F32", "F64"):
                raise FormatError(
                    f"tensor '{name}' is {parts[name].get_dtype()}; save it as float16 or float32", file=path.name
                )
            count = parts[name].get_shape()[0]
            if numbers is not None and numbers.get_shape()[0] != count:
                raise FormatError(f"{numbers.get_shape()[0]} ids for {count} vectors; write it again", file=path.name)
            for start in range(0, count, ROWS):
                stop = min(start + ROWS, count)
                vectors = parts[name][start:stop]
                _table(path, vectors)
                yield Block(None if numbers is None else [str(i) for i in numbers[start:stop].tolist()], vectors)
    except (SafetensorError, OSError) as e:
        raise FormatError(f"not a complete safetensors file ({e}); copy it again", file=path.name) from e


def _parquet(path: Path, given: Given) -> Iterator[Block]:
    """A column of lists, and perhaps one of ids."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
            there = file.schema_arrow.names
            wanted = (given.column,) if given.column else COLUMNS
            column = next((c for c in wanted if c in there), None)
            if column is None:
                raise FormatError(
                    f"no column {', '.join(wanted)}; it has {', '.join(there)[:200]}: name the one of the vectors with --vector-column",
                    file=path.name,
                )
            key = next((c for c in given.columns.id if c in there), None)
            row = 0
            for batch in file.iter_batches(ROWS, columns=[column] + ([key] if key else [])):
                lists = batch.column(column)
                if not hasattr(lists, "value_lengths"):
                    raise FormatError(f"column '{column}' is {lists.type}; expected lists of floats", file=path.name)
                sizes = set(lists.value_lengths().to_pylist())
                if len(sizes) != 1 or None in sizes:
                    raise FormatError(f"rows {row + 1} to {row + len(lists)} of '{column}' differ in length", file=path.name)
                vectors = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lists), sizes.pop())
                _table(path, vectors)
                yield Block([str(plain(i)) for i in batch.column(key).to_pylist()] if key else None, vectors)
                row += len(lists)
    except (pyarrow.ArrowException, OSError) as e:
        said = " ".join(str(e).split())[:150]
        raise FormatError(f"not a complete Parquet file ({said}); copy it again", file=path.name) from e


def _pickle(path: Path, given: Given) -> Iterator[Block]:
    if not dpr.is_pickle(path):
        raise InputError(
            f"{path.name}: vectors are read from {', '.join(KINDS)} files, and from DPR's pickles; this is none of them"
        )
    ids, vectors = dpr.read(path)
    yield Block(ids, vectors)


def _faiss(path: Path, given: Given) -> Iterator[Block]:
    """The vectors that a finished index holds; of a quantised one, what its codes stand for."""
    import faiss

    index: Any = opened(path)
    ids = None
    if isinstance(index, faiss.IndexIDMap):
        ids = faiss.vector_to_array(index.id_map)
        index = faiss.downcast_index(index.index)
    for start in range(0, index.ntotal, ROWS):
        size = min(ROWS, index.ntotal - start)
        try:
            if isinstance(index, faiss.IndexIVF) and not start:
                index.make_direct_map()
            vectors = index.reconstruct_batch(np.arange(start, start + size))
        except RuntimeError as e:
            kind = type(index).__name__
            raise InputError(
                f"{path.name}: no vectors can be read out of this {kind}; give the vectors that it was made of"
            ) from e
        yield Block(None if ids is None else [str(i) for i in ids[start : start + size]], vectors)


def opened(path: Path) -> Any:
    """A FAISS index, memory-mapped where its kind allows.  Raises FormatError if it is damaged or cut short."""
    import faiss

    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except RuntimeError as e:
        said = " ".join(str(e).split())[-150:]
        raise FormatError(f"not a complete FAISS index ({said}); copy it again", file=path.name) from e


KINDS: dict[str, Callable[[Path, Given], Iterator[Block]]] = {
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".parquet": _parquet,
    ".pkl": _pickle,
    ".faiss": _faiss,
}


def is_index(path: Path) -> bool:
    return path.suffix.lower() == ".faiss"


def blocks(path: Path, given: Given) -> Iterator[Block]:
    """The vectors of one file, block by block.  Raises FormatError, InputError."""
    return KINDS.get(path.suffix.lower(), _pickle)(path, given)


def listed_ids(path: Path) -> Iterator[str]:
    """The ids of a file: a line each, or a JSON list.  Raises FormatError, InputError."""
    try:
        if path.suffix.lower() == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(found, list):
                raise FormatError("expected a JSON list of ids", file=path.name)
            yield from (str(plain(i)) for i in found)
            return
        with path.open(encoding="utf-8") as lines:
            yield from (re.sub(r"\r?\n$", "", line) for line in lines)
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror or e}); give the path of an existing file") from e
    except ValueError as e:
        raise FormatError(f"not a list of ids ({e}); write an id a line", file=path.name) from e
