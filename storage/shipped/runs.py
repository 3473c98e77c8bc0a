"""Evaluations that come with Ambiscope: packed into one file of the repository, unpacked into a separate database.

The first line says what the file was made with (`ArchiveInfo`).  Each run has two: its folder and report, then its traces (storage.shipped.traces),
which are most of the file and are parsed only where they are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from core.errors import FormatError, StorageError
from core.settings import ROOT
from core.trace import to_json
from core.types import Prediction
from storage.results.run_folders import save_run
from storage.schema.creation import head
from storage.shipped.traces import Body, expand, passages, read
from storage.store import Store

ARCHIVE = ROOT / "data" / "shipped" / "runs.jsonl.xz"
COMMAND = "python -m benchmarks.shipped_runs data/starter/questions.json data/starter_test/questions.json"


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """`weights`: digest of each bundled checkpoint; `limit`: only the first questions of each file were asked (0: all of them)."""

    commit: str
    weights: Mapping[str, str]
    systems: Sequence[str]
    limit: int
    runs: int


def packed(archive: Path | None = None, traced: bool = True) -> Iterator[Body]:
    """The runs in the file: `folder`, `report` and, if wanted, `traces`.  Raises FormatError, StorageError."""
    lines = read(archive or ARCHIVE, lambda number: number > 0 and (traced or number % 2 == 1))
    yield from (run | next(lines, {}) for run in lines) if traced else lines


def about(archive: Path | None = None) -> ArchiveInfo:
    """The facts about how the file was made.  Raises FormatError, StorageError."""
    try:
        return ArchiveInfo(**next(read(archive or ARCHIVE), {}))
    except TypeError as error:
        raise FormatError(f"no shipped runs ({error}); get Ambiscope again", file=(archive or ARCHIVE).name) from None


def digest(archive: Path | None = None) -> str:
    """Identifies the database that is made from the file in this version's schema.  Raises StorageError if there is no file."""
    path = archive or ARCHIVE
    try:
        stat = path.stat()
        return _digest(path, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror or error}); get Ambiscope again") from error


@lru_cache(maxsize=2)
def _digest(path: Path, _size: int, _changed: int) -> str:
    """The digest, read once, because the page asks for it at each call of its store."""
    return hashlib.sha256(head().encode() + path.read_bytes()).hexdigest()[:12]


def load(
    store: Store,
    archive: Path | None = None,
    root: Path = ROOT,
    progress: Callable[[int, int], None] = lambda count, total: None,
    traced: bool = True,
) -> int:
    """Stores every run of the file, each once; returns how many there are.  `traced`: with their traces, which take most of the time.

    Raises FormatError, StorageError, and what `progress` raises.
    """
    total, count = about(archive).runs, 0
    passages_by_folder: dict[str, dict[str, Body]] = {}
    for count, run in enumerate(packed(archive, traced), 1):
        progress(count - 1, total)
        folder = run["folder"]
        if traced and folder not in passages_by_folder:
            passages_by_folder[folder] = passages(root / folder)
        traces = [(name, to_json(expand(trace, passages_by_folder[folder]))) for name, trace in run["traces"]] if traced else []
        save_run(store.evaluations, run["report"], traces)
    return count


@lru_cache(maxsize=2)
def _traces(archive: Path, root: Path, system: str, questions: str) -> tuple[Mapping[str, Body], Mapping[str, Body]]:
    """The traces of a run, and the passages that they name."""
    for position, run in enumerate(packed(archive, traced=False)):
        provenance = run["report"]["provenance"]
        if (provenance["system"]["name"], provenance["questions"]) == (system, questions):
            (line,) = read(archive, (2 * position + 2).__eq__)
            return dict(line["traces"]), passages(root / run["folder"])
    return {}, {}


def trace(system: str, questions: str, question_id: str, archive: Path | None = None, root: Path = ROOT) -> Prediction | None:
    """The trace of one question in the shipped run of `system` over `questions`; None if there is none.  Raises FormatError,
    StorageError."""
    traces, passages_by_id = _traces(archive or ARCHIVE, root, system, questions)
    return expand(traces[question_id], passages_by_id) if question_id in traces else None
