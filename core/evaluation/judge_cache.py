"""A cache of model judgments, by content: one SQLite file under AMBISCOPE_HOME, safe for threads and processes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from core.errors import StorageError

_LOCK_SECONDS = 20.0  # seconds for another process to finish writing


class Judgments:
    """Keys are digests of everything that affects a judgment; values are plain JSON. A damaged file is reported and never
    overwritten."""

    def __init__(self, path: Path) -> None:
        """The first `put` creates the file."""
        self._path, self._lock = path, threading.Lock()

    @staticmethod
    def key(*content: Any) -> str:
        """A digest of plain JSON values.

        >>> Judgments.key({"a": 1, "b": 2}) == Judgments.key({"b": 2, "a": 1})
        True
        """
        body = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=_LOCK_SECONDS)
            connection.execute("CREATE TABLE IF NOT EXISTS judgment (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
            return connection
        except (OSError, sqlite3.Error) as e:
            raise StorageError(f"{self._path} cannot be used ({e}); check the disk, or move the file away") from e

    def get(self, key: str) -> Any:
        """The value, or None if there is none.  Raises StorageError."""
        if not self._path.exists():
            return None
        with self._lock, closing(self._open()) as connection:
            try:
                row = connection.execute("SELECT value FROM judgment WHERE key = ?", (key,)).fetchone()
                return json.loads(row[0]) if row else None
            except (sqlite3.Error, ValueError) as e:
                raise StorageError(f"{self._path} cannot be read ({e}); move the file away to judge again") from e

    def put(self, key: str, value: Any) -> None:
        """Raises StorageError if the disk refuses."""
        with self._lock, closing(self._open()) as connection:
            try:
                with connection:
                    connection.execute("INSERT OR REPLACE INTO judgment VALUES (?, ?)", (key, json.dumps(value)))
            except sqlite3.Error as e:
                raise StorageError(f"{self._path} cannot be written ({e}); free some space and start again to resume") from e
