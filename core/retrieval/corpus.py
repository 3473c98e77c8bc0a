"""Passages on disk: rows in one file, their offsets in another, memory-mapped; an SQLite table finds a row by id.

Nothing here holds a corpus in memory: 21 million passages (English Wikipedia in the DPR layout) open as fast as twenty.

Files of a store: `rows.tsv` (id, title, text; tabs are only separators, and a text may have several lines), `offsets.i64` (n + 1 byte offsets), `ids.sqlite`, and `passages.json` (count, digest, sizes), written last: a store without it
is incomplete.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import FormatError, IndexMismatchError, NotFoundError
from core.types import Passage

FACTS = "passages.json"
_FILES = ("rows.tsv", "offsets.i64", "ids.sqlite", FACTS)
Mark = tuple[int, int, Any]  # number of rows, their bytes, their digest so far


def folder_size(folder: Path) -> int:
    """Bytes of the files in a folder; files that a running build renames or removes meanwhile are ignored."""
    size = 0
    for parent, _, names in os.walk(folder):  # unlike rglob it resumes where a folder vanishes
        for name in names:
            with suppress(OSError):
                size += (Path(parent) / name).stat().st_size
    return size


def read_facts(path: Path) -> dict[str, Any]:
    """A JSON object from a file.  Raises IndexMismatchError when it is damaged, FileNotFoundError when it is missing."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise IndexMismatchError(f"{path} is damaged ({e}); delete the corpus and build it again") from e
    if not isinstance(facts, dict):
        raise IndexMismatchError(f"{path} is damaged (not an object); delete the corpus and build it again")
    return facts


def _encode(passage: Passage) -> bytes:
    row = f"{passage.id}\t{passage.title}\t{passage.text}"
    if row.count("\t") != 2 or "\n" in passage.id + passage.title:
        raise FormatError("a passage must not contain a tab, nor its id and title a line break", field=passage.id)
    return row.encode("utf-8") + b"\n"


class PassageWriter:
    """Writes a store; use as a context manager.  Without `finish` the folder stays unfinished."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (folder / name).unlink(missing_ok=True)
        self.folder, self.count, self._size = folder, 0, 0
        self._digest = hashlib.sha256()
        self._rows: BinaryIO = (folder / "rows.tsv").open("wb")
        self._offsets: BinaryIO = (folder / "offsets.i64").open("wb")
        self._offsets.write(np.int64(0).tobytes())
        self._ids = sqlite3.connect(folder / "ids.sqlite", isolation_level=None)
        # an unfinished store is rewritten, so the table needs no journal of its own
        self._ids.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;")
        self._ids.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID")
        self._ids.execute("BEGIN")

    def __enter__(self) -> PassageWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with ExitStack() as all_of_them:  # closing flushes buffers: if the disk is full, the others are closed all the same
            for file in (self._rows, self._offsets, self._ids):
                all_of_them.callback(file.close)

    def taken(self, passage_id: str) -> bool:
        return self._ids.execute("SELECT 1 FROM ids WHERE id = ?", (passage_id,)).fetchone() is not None

    def add(self, passage: Passage) -> None:
        """Raises FormatError for a duplicate id, or a tab or line break in a field."""
        row = _encode(passage)
        try:
            self._ids.execute("INSERT INTO ids VALUES (?, ?)", (passage.id, self.count))
        except sqlite3.IntegrityError as e:
            raise FormatError(f"duplicate passage id '{passage.id}'") from e
        self._rows.write(row)
        self._digest.update(row)
        self._size += len(row)
        self._offsets.write(np.int64(self._size).tobytes())
        self.count += 1

    def mark(self) -> Mark:
        """The state so far, for `rollback`."""
        return self.count, self._size, self._digest.copy()

    def rollback(self, mark: Mark) -> None:
        """Removes everything that was added since the mark."""
        self.count, self._size, self._digest = mark[0], mark[1], mark[2].copy()
        for stream, size in ((self._rows, self._size), (self._offsets, (self.count + 1) * np.dtype(np.int64).itemsize)):
            stream.truncate(size)
            stream.seek(size)
        self._ids.execute("DELETE FROM ids WHERE row >= ?", (self.count,))

    def finish(self, **facts: Any) -> str:
        """Publishes the store and returns its digest.  `facts` (source, rejected rows, ...) are stored with the count.

        Raises OSError, sqlite3.Error or StorageError when the disk refuses.
        """
        self._ids.execute("COMMIT")
        for f in (self._rows, self._offsets):
            f.flush()
            os.fsync(f.fileno())
        digest = self._digest.hexdigest()
        disk.write_text(
            self.folder / FACTS,
            json.dumps({**facts, "passages": self.count, "digest": digest, "bytes": self._size}, ensure_ascii=False),
        )
        return digest


class PassageStore:
    """The passages of a corpus by row, by id or in order.  Safe to read from several threads and processes."""

    def __init__(self, folder: Path) -> None:
        """Opens a finished store.

        Raises NotFoundError if there is none, IndexMismatchError if its files do not match.
        """
        self.folder = folder
        try:
            self.facts = read_facts(folder / FACTS)
            self._rows: NDArray[np.uint8] = disk.mapped(folder / "rows.tsv", np.uint8)
            self._offsets: NDArray[np.int64] = disk.mapped(folder / "offsets.i64", np.int64)
        except FileNotFoundError as e:
            raise NotFoundError(f"{folder} holds no finished passage store; build the corpus again") from e
        self.digest = str(self.facts.get("digest", ""))
        count = self.facts.get("passages")
        if (
            len(self._offsets) != (count if isinstance(count, int) else -1) + 1
            or len(self._rows) != self.facts.get("bytes")
            or int(self._offsets[-1]) != len(self._rows)
        ):
            raise IndexMismatchError(
                f"{folder}: the rows do not fit {FACTS} ({count} passages, {self.facts.get('bytes')} bytes expected; "
                f"{len(self._offsets) - 1} and {len(self._rows)} found); delete the corpus and build it again"
            )
        self._lock = threading.Lock()
        self._ids: sqlite3.Connection | None = None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, row: int) -> Passage:
        """Raises IndexError outside 0..len-1: FAISS's -1 for "nothing" must never become the last passage."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self)} passages")
        raw = self._rows[self._offsets[row] : self._offsets[row + 1] - 1].tobytes()
        try:
            passage_id, title, text = raw.decode("utf-8").split("\t")
        except ValueError as e:  # not UTF-8, or not three fields
            raise IndexMismatchError(f"{self.folder}: row {row} is damaged; delete the corpus and build it again") from e
        return Passage(passage_id, title, text)

    def __iter__(self) -> Iterator[Passage]:
        return (self[row] for row in range(len(self)))

    def passages(self, offset: int = 0, limit: int = 50) -> list[Passage]:
        """At most `limit` passages from row `offset`; an empty list past the end."""
        return [self[row] for row in range(max(0, offset), min(len(self), max(0, offset) + max(0, limit)))]

    def row_of(self, passage_id: str) -> int | None:
        with self._lock:
            if self._ids is None:
                path = self.folder / "ids.sqlite"
                self._ids = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
            try:
                found = self._ids.execute("SELECT row FROM ids WHERE id = ?", (passage_id,)).fetchone()
            except sqlite3.DatabaseError as e:
                raise IndexMismatchError(f"{self.folder}: ids.sqlite is damaged ({e}); build the corpus again") from e
        return None if found is None else int(found[0])

    def get(self, passage_id: str) -> Passage:
        """Raises NotFoundError for an unknown id."""
        row = self.row_of(passage_id)
        if row is None:
            raise NotFoundError(f"no passage has the id '{passage_id}' in this corpus of {len(self)} passages")
        return self[row]

    def verify(self) -> None:
        """Reads all rows.  Raises IndexMismatchError if they do not match the digest."""
        found = hashlib.sha256()
        for start in range(0, len(self._rows), 1 << 24):
            found.update(self._rows[start : start + (1 << 24)].tobytes())
        if found.hexdigest() != self.digest:
            raise IndexMismatchError(
                f"{self.folder}: the passages were changed after the index was built (digest {found.hexdigest()[:12]}, "
                f"expected {self.digest[:12]}); delete the corpus and build it again"
            )
