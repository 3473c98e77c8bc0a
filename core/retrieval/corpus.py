"""The passage store: one SQLite table, in which row i is passage i.  It stays on disk, so 21 million passages (the English
Wikipedia in the DPR layout) open as fast as twenty.

Files of a store: `passages.sqlite`, and `passages.json` (count, digest, size), written last: a store without it is incomplete.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from core import disk
from core.errors import FormatError, IndexMismatchError, NotFoundError
from core.types import Passage

PASSAGES, FACTS = "passages.sqlite", "passages.json"
AT_ONCE = 1000  # rows, of those that are read in order
PrefixDigest = tuple[int, Any]  # number of rows, their digest so far


def folder_size(folder: Path) -> int:
    """The size of a folder's files in bytes.  Files that a running build renames or removes meanwhile are ignored."""
    size = 0
    for parent, _, names in os.walk(folder):  # unlike rglob it resumes where a folder vanishes
        for name in names:
            with suppress(OSError):
                size += (Path(parent) / name).stat().st_size
    return size


def read_facts(path: Path) -> dict[str, Any]:
    """Reads a JSON object from a file.  Raises IndexMismatchError if it is damaged, FileNotFoundError if it is missing."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise IndexMismatchError(f"{path} is damaged ({e}); delete the corpus and build it again") from e
    if not isinstance(facts, dict):
        raise IndexMismatchError(f"{path} is damaged (not an object); delete the corpus and build it again")
    return facts


def _digested(passage: Passage) -> bytes:
    row = f"{passage.id}\t{passage.title}\t{passage.text}"
    if row.count("\t") != 2 or "\n" in passage.id + passage.title:
        raise FormatError("a passage must not contain a tab, nor its id and title a line break", field=passage.id)
    return row.encode("utf-8") + b"\n"


class PassageWriter:
    """Writes a store, as a context manager.  Without `finish` the folder stays incomplete."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (PASSAGES, FACTS):
            (folder / name).unlink(missing_ok=True)
        self.folder, self.count = folder, 0
        self._digest = hashlib.sha256()
        self._db = sqlite3.connect(folder / PASSAGES, isolation_level=None)
        try:
            # an unfinished store is rewritten, so the table needs no journal of its own
            self._db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;")
            self._db.execute(
                "CREATE TABLE passages (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, text TEXT NOT NULL)"
            )
            self._db.execute("BEGIN")
        except sqlite3.Error:  # a full disk
            self._db.close()
            raise

    def __enter__(self) -> PassageWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    def has_id(self, passage_id: str) -> bool:
        return self._db.execute("SELECT 1 FROM passages WHERE id = ?", (passage_id,)).fetchone() is not None

    def add(self, passage: Passage) -> None:
        """Adds a passage.  Raises FormatError for a duplicate id, or for a tab or line break in a field."""
        row = _digested(passage)
        try:
            self._db.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", (self.count, passage.id, passage.title, passage.text))
        except sqlite3.IntegrityError as e:
            raise FormatError(f"duplicate passage id '{passage.id}'") from e
        self._digest.update(row)
        self.count += 1

    def mark(self) -> PrefixDigest:
        """The state so far, for `rollback`."""
        return self.count, self._digest.copy()

    def rollback(self, mark: PrefixDigest) -> None:
        """Removes everything that was added since the mark."""
        self.count, self._digest = mark[0], mark[1].copy()
        self._db.execute("DELETE FROM passages WHERE row >= ?", (self.count,))

    def finish(self, **facts: Any) -> str:
        """Publishes the store and returns its digest.  `facts` (source, rejected rows, ...) are stored with the count.

        Raises OSError, sqlite3.Error or StorageError when the disk refuses.
        """
        self._db.execute("COMMIT")
        self._db.close()
        with (self.folder / PASSAGES).open("rb+") as file:
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
        all_facts = {**facts, "passages": self.count, "digest": self._digest.hexdigest(), "bytes": size}
        disk.write_text(self.folder / FACTS, json.dumps(all_facts, ensure_ascii=False))
        return str(all_facts["digest"])


class PassageStore:
    """The passages of a corpus by row, by id or in order.  Safe to read from several threads and processes."""

    def __init__(self, folder: Path) -> None:
        """Opens a finished store.

        Raises NotFoundError if there is none, IndexMismatchError if its files do not match.
        """
        self.folder, self._lock, path = folder, threading.Lock(), folder / PASSAGES
        try:
            self.facts = read_facts(folder / FACTS)
            size = path.stat().st_size
        except FileNotFoundError as e:
            raise NotFoundError(f"{folder} holds no finished passage store; build the corpus again") from e
        self.digest = str(self.facts.get("digest", ""))
        # what is finished never changes; the folder may get another name while it is open
        self._db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self._count = (
            -1 if size != self.facts.get("bytes") else self._query("SELECT coalesce(max(row) + 1, 0) FROM passages")[0][0]
        )
        if self._count != self.facts.get("passages"):
            raise IndexMismatchError(
                f"{path}: {size} bytes do not fit {FACTS} ({self.facts.get('passages')} passages, {self.facts.get('bytes')} bytes); "
                "delete the corpus and build it again"
            )

    def close(self) -> None:
        self._db.close()

    def _query(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Runs a query.  Raises IndexMismatchError for a damaged table."""
        try:
            with self._lock:
                return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as e:
            raise IndexMismatchError(f"{self.folder / PASSAGES} is damaged ({e}); delete the corpus and build it again") from e

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> Passage:
        """The passage in a row.  Raises IndexError outside 0..len-1, because FAISS's -1 for "nothing" must never become the
        last passage."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a corpus of {len(self)} passages")
        return self.passages(int(row), 1)[0]

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, len(self), AT_ONCE):
            yield from self.passages(start, AT_ONCE)

    def passages(self, offset: int = 0, limit: int = 50) -> list[Passage]:
        """At most `limit` passages from row `offset`; an empty list past the end."""
        first = min(max(0, offset), len(self))  # SQLite's numbers have 64 bits
        last = min(first + limit, len(self))
        rows = self._query("SELECT id, title, text FROM passages WHERE row >= ? AND row < ? ORDER BY row", first, last)
        return [Passage(*row) for row in rows]

    def row_of(self, passage_id: str) -> int | None:
        rows = self._query("SELECT row FROM passages WHERE id = ?", passage_id)
        return rows[0][0] if rows else None

    def get(self, passage_id: str) -> Passage:
        """The passage with an id.  Raises NotFoundError for an unknown one."""
        row = self.row_of(passage_id)
        if row is None:
            raise NotFoundError(f"no passage has the id '{passage_id}' in this corpus of {len(self)} passages")
        return self[row]

    def verify(self) -> None:
        """Reads all rows.  Raises IndexMismatchError if they do not match the digest."""
        digest = hashlib.sha256()
        for passage in self:
            digest.update(_digested(passage))
        if digest.hexdigest() != self.digest:
            raise IndexMismatchError(
                f"{self.folder}: the passages were changed after the index was built (digest {digest.hexdigest()[:12]}, "
                f"expected {self.digest[:12]}); delete the corpus and build it again"
            )
