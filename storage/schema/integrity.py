"""Whether a database file is intact and Ambiscope's: checked before a backup replaces anything."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import zlib
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from core.errors import StorageError
from storage.schema.base import Base, JsonText, UtcDateTime
from storage.schema.creation import SEAL, check_revision, checksum, create_tables, revision_of, verify
from storage.schema.engine import DamagedError, explain, parse_url

_WRITTEN_BY = slice(18, 20)  # bytes of a file: 1, 1 in a copy; 2, 2 once a store has opened it (WAL)
_CHUNK_BYTES = 1024 * 1024  # bytes unpacked at a time
_UNCHANGED = "nothing was changed; restore another backup"


def check_backup(path: Path) -> None:
    """Returns if the file has the bytes that `copy_database` wrote (a plain copy of a database has no checksum), exactly the tables,
    columns, indexes, triggers and views of this version's schema, no damaged page, index or reference, and values that can be read.

    Raises StorageError for any other file, NewerDatabaseError for a later revision.  Nothing is written.
    """
    revision = revision_of(path)
    if revision is None:
        raise StorageError(f"{path}: it is empty; {_UNCHANGED}")
    check_revision(revision, str(path))
    with path.open("rb") as file:
        header = file.read(100)
    if header[_WRITTEN_BY] == b"\1\1" and header[SEAL] != bytes(4) and header[SEAL] != checksum(path):
        raise DamagedError(f"{path}: the file was changed or damaged after the backup was made; {_UNCHANGED}")
    try:
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            _check_schema(connection, str(path), revision)
            verify(connection, str(path))
            _check_values(connection, str(path))
    except sqlite3.Error as e:
        raise explain(e, str(path)) from None


def _definitions(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """The definition of each table, index, trigger and view, by kind and name."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'")
    return {(str(kind), str(name)): " ".join(str(sql or "").split()) for kind, name, sql in rows}


def _check_schema(connection: sqlite3.Connection, database: str, revision: str) -> None:
    """Raises StorageError unless the definitions are those of a new database."""
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder, "schema.db")
        reference.touch()  # a connection creates no file
        create_tables(parse_url(f"sqlite:///{reference}"))
        with closing(sqlite3.connect(reference)) as empty:
            expected = _definitions(empty)
    definitions = _definitions(connection)
    for kind, name in sorted(expected.keys() | definitions.keys()):
        if (kind, name) not in expected:
            fault = f"has a {kind} '{name[:80]}', which is not part of it"
        elif (kind, name) not in definitions:
            fault = f"lacks the {kind} {name}"
        elif definitions[kind, name] != expected[kind, name]:
            fault = f"defines the {kind} {name} differently"
        else:
            continue
        raise StorageError(f"{database}: the file says that it has schema {revision} and {fault}; {_UNCHANGED}")


def _check_values(connection: sqlite3.Connection, database: str) -> None:
    """Raises DamagedError for a value that cannot be read.  SQLite has no checksums: it does not notice bytes that were overwritten within
    a value."""
    connection.text_factory = bytes
    for table in [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]:
        definition = Base.metadata.tables.get(table)
        types: dict[str, Any] = {c.name: c.type for c in definition.columns} if definition is not None else {}
        info = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
        columns = [(row[1].decode(), row[2] == b"BLOB") for row in info]
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            for (name, is_packed), value in zip(columns, row, strict=True):
                if isinstance(value, bytes) and not (_unpacks(value) if is_packed else _reads(value, types.get(name))):
                    raise DamagedError(f"{database}: a value of {table}.{name} is damaged; {_UNCHANGED}")


def _reads(value: bytes, kind: Any) -> bool:
    """Whether a text is UTF-8 without NUL, and JSON or a time where the column holds these."""
    try:
        text = value.decode()
        if isinstance(kind, JsonText):
            json.loads(text)
        elif isinstance(kind, UtcDateTime):
            datetime.fromisoformat(text)
    except (ValueError, RecursionError):
        return False
    return "\0" not in text


def _unpacks(value: bytes) -> bool:
    """Whether a packed value can be unpacked and has its checksum.  Memory is bounded, whatever it unpacks to."""
    unpacker = zlib.decompressobj()
    try:
        unpacker.decompress(value, _CHUNK_BYTES)
        while not unpacker.eof and unpacker.unconsumed_tail:
            unpacker.decompress(unpacker.unconsumed_tail, _CHUNK_BYTES)
    except zlib.error:
        return False
    return unpacker.eof and not unpacker.unused_data
