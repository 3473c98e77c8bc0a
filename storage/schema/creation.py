"""Creates the database at the first start, behind a file lock and in one transaction; refuses one that is not of this version's schema.

Before anything is written, the file is opened read-only: one of another schema, a foreign one and a damaged one are refused and
not changed by a byte.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from filelock import FileLock, Timeout
from sqlalchemy.engine import URL

from core.disk import replacing
from core.errors import NewerDatabaseError, StorageError
from storage.schema import tables, workbench
from storage.schema.base import Base
from storage.schema.engine import (
    DamagedError,
    accounts_file,
    explain,
    make_engine,
    open_sqlite,
    parse_url,
    sqlite_path,
    storage_errors,
    writing_engine,
)

TABLES = (tables, workbench)  # modules whose import fills Base.metadata
MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"
LOCK_SECONDS = 60.0
MAX_CHECKED_BYTES = 64 * 1024 * 1024  # files up to this size are checked at every start (about 0.2 s); larger ones by `check`
# of a copy: SQLite's "application id", which Ambiscope uses for nothing else, holds its checksum
CHECKSUM_BYTES = slice(68, 72)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))  # '%' is the parser's escape
    config.set_main_option("path_separator", "os")
    return config


@cache
def head() -> str:
    """The schema revision of this version of Ambiscope; read once a process."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def revision_of(path: Path) -> str | None:
    """The schema revision of a SQLite file; None for a missing or empty one.  Nothing is written.

    Raises StorageError for a damaged file, and for a database that is not Ambiscope's.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as e:
        raise StorageError(f"{path}: cannot be read ({e.strerror or e})") from None
    if not size:
        return None
    wal = path.with_name(path.name + "-wal")
    # a read-only connection would still make -wal and -shm files; an immutable one touches nothing, but would miss an
    # existing WAL
    mode = "mode=ro" if wal.exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=10)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not wal.exists() and size % connection.execute("PRAGMA page_size").fetchone()[0]:
                # SQLite reads the missing rest of a last page as zeros and may not notice
                raise sqlite3.DatabaseError(f"malformed: {size} bytes are no whole number of pages")
            if not names:
                return None
            if "alembic_version" not in names:
                raise StorageError(
                    f"{path}: this SQLite database is not Ambiscope's: use another file or another AMBISCOPE_HOME"
                )
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
            if size <= MAX_CHECKED_BYTES:
                (status,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if status != "ok":
                    raise sqlite3.DatabaseError(f"malformed: {status}")
    except sqlite3.Error as e:
        raise explain(e, str(path)) from None
    if len(rows) != 1:
        raise DamagedError(f"{path}: the schema revision is missing: put a backup back with `python -m storage restore BACKUP`")
    return str(rows[0][0])


def check_revision(revision: str, database: str) -> None:
    """Raises StorageError for an earlier schema than this version's, NewerDatabaseError for a later or unknown one."""
    if revision < head():
        raise StorageError(
            f"{database}: an earlier checkout of Ambiscope made this database (schema {revision}); nothing was changed: convert it with "
            "`python docs/convert_database.py OLD NEW`"
        )
    if revision != head():
        raise NewerDatabaseError(
            f"{database}: the database has schema {revision}, this Ambiscope knows up to {head()}: "
            "update Ambiscope, or use another AMBISCOPE_HOME; nothing was changed"
        )


def copy_database(source: Path, target: Path) -> None:
    """A consistent copy of a database in use, as one file without a WAL, readable by its owner only; verified before it
    gets its name.  It has a checksum of its bytes (`checksum`), which `storage.exchange.backup.check_backup` compares.

    Raises StorageError (disk full, damaged source); then `target` is as it was.
    """
    with storage_errors(f"{source} -> {target}"), replacing(target) as draft:
        draft.touch(0o600)
        with closing(open_sqlite(source)) as old, closing(open_sqlite(draft)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")
            verify(new, str(source))
        seal = checksum(draft)
        with draft.open("r+b") as file:
            file.seek(CHECKSUM_BYTES.start)
            file.write(seal)


def checksum(path: Path) -> bytes:
    """CRC-32 of a file without the bytes that hold it; never zero, which is SQLite's default there."""
    with path.open("rb") as file:
        head = bytearray(file.read(4096))
        head[CHECKSUM_BYTES] = bytes(4)
        crc = zlib.crc32(head)
        while part := file.read(1024 * 1024):
            crc = zlib.crc32(part, crc)
    return (crc or 1).to_bytes(4, "big")


def verify(connection: sqlite3.Connection, database: str) -> None:
    """Raises StorageError if the file is not intact or a reference leads nowhere."""
    (status,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if status != "ok":
        raise explain(sqlite3.DatabaseError(f"malformed: {status}"), database)
    orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
    if orphan is not None:
        raise StorageError(f"{database}: row {orphan[1]} of table {orphan[0]} refers to a row of {orphan[2]} that is not there")


def backup_name(path: Path, label: str) -> Path:
    """The path of an automatic backup, in the folder `backups` beside the database."""
    return path.parent / "backups" / f"{path.stem}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"


def create_tables(url: URL) -> None:
    """Creates the tables of this version's schema in an empty database, in one transaction.  It isn't an error if another start
    has created them first.

    Source: Alembic's cookbook, "Building an Up to Date Database from Scratch".
    """
    engine = make_engine(url)
    try:
        with writing_engine(engine).connect() as connection, connection.begin():
            Base.metadata.create_all(connection)
            settings = _config()
            settings.attributes["connection"] = connection
            command.stamp(settings, "head")
    finally:
        engine.dispose()


def ensure_current(url: str) -> None:
    """Creates the database if there is none.

    Raises StorageError (of an earlier schema, damaged, foreign, locked, disk full, folder not writable) or NewerDatabaseError: then
    nothing was changed.
    """
    parsed = parse_url(url)
    path = sqlite_path(parsed)
    if path is None:
        database = parsed.render_as_string(hide_password=True)
        with storage_errors(database):
            engine = make_engine(parsed)
            try:
                with engine.connect() as connection:
                    revision = MigrationContext.configure(connection).get_current_revision()
            finally:
                engine.dispose()
            if revision is None:
                create_tables(parsed)
        if revision is not None:
            check_revision(revision, database)
        return
    if (revision := revision_of(path)) is not None:
        check_revision(revision, str(path))
        return
    with creation_lock(path):
        if revision_of(path) is None:  # else another program created it while this one waited
            _create(parsed, path)


@contextmanager
def creation_lock(path: Path) -> Iterator[None]:
    """One program at a time creates or restores a database file, in a folder made if need be.  Raises StorageError if another one holds
    the lock for LOCK_SECONDS, or the disk refuses."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock", timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise StorageError(
            f"{path}: another program has been creating it for {LOCK_SECONDS:.0f} s; if none is running, delete {path}.lock"
        ) from None
    except OSError as e:
        raise StorageError(f"{path}: the folder cannot be written ({e.strerror or e}): use another AMBISCOPE_HOME") from e


def _create(url: URL, path: Path) -> None:
    if (accounts := accounts_file(path)).exists():
        raise StorageError(
            f"{path}: the database of this installation, which has accounts, is missing or empty: put it back, or a backup with "
            f"`python -m storage restore BACKUP`; to start without accounts, delete {accounts}"
        )
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # people's words: for the owner's eyes
    with storage_errors(str(path)):
        create_tables(url)
