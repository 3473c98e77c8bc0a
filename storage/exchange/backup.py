"""Backups, restoring, and the database's health."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, select

from core.disk import replacing
from core.errors import InputError, StorageError
from storage.access.permissions import allowed_to, operator_only
from storage.exchange.consensus import CONSENSUS_RULE
from storage.exchange.dump import LAYOUT
from storage.exchange.exports.files import digest, note_export
from storage.records.results import Health, Manifest
from storage.schema import tables
from storage.schema.base import Base
from storage.schema.creation import (
    CHECKSUM_BYTES,
    backup_name,
    check_revision,
    checksum,
    copy_database,
    create_tables,
    creation_lock,
    ensure_current,
    head,
    revision_of,
    verify,
)
from storage.schema.engine import DamagedError, Part, explain, now, parse_url, sqlite_path, storage_errors

STALE_BACKUP_DAYS = 7
_WRITTEN_BY = slice(18, 20)  # bytes of a file: 1, 1 in a copy; 2, 2 once a store has opened it (WAL)
_UNCHANGED = "nothing was changed; restore another backup"
# https://sqlite.org/wal.html#walresetbug: two connections that write and checkpoint in the same instant
WAL_RACE_FIXED = (3, 51, 3)


class Maintenance(Part):
    """The part of the Store about the database as a whole: backups, health, counts."""

    @allowed_to("back up")
    def backup(self, out: Path | None = None) -> Manifest:
        """A verified copy of the whole database (default: in the folder `backups` beside it), made while it is in use.

        Raises InputError when the file exists or the database is no SQLite file, StorageError when the copy fails or is
        not equal, ReplacedError.
        """
        if self.database.path is None:
            raise InputError("only SQLite files are backed up here; use your database server's own tools")
        target = backup_name(self.database.path, head()) if out is None else out.absolute()
        if target.exists():
            raise InputError(f"{target} exists: a backup never overwrites; give another name")
        self.database.check_file()
        copy_database(self.database.path, target)
        with closing(sqlite3.connect(f"{target.as_uri()}?immutable=1", uri=True)) as copy:
            counts = {
                name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in sorted(Base.metadata.tables)
            }
        size = target.stat().st_size
        manifest = Manifest("backup", str(target), digest(target), size, counts, {}, CONSENSUS_RULE, head(), LAYOUT, now())
        note_export(self.database, manifest, target)
        return manifest

    @allowed_to("back up")
    def health(self, *, full: bool = False) -> Health:
        """The state of the database.  `full` also checks foreign keys and every index (slower than the quick check).  Damage
        raises nothing: it is reported in `integrity`.
        """
        path, warnings = self.database.path, []
        size, integrity, journal, revision, age = 0, "ok", "", "", None
        try:
            self.database.check_file()
            with self.reading() as session:
                connection = session.connection()
                if path is not None:
                    size = sum(p.stat().st_size for p in (path, Path(f"{path}-wal")) if p.exists())
                    journal = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
                    check = "integrity_check" if full else "quick_check"
                    integrity = str(connection.exec_driver_sql(f"PRAGMA {check}(1)").scalar())
                    orphan = connection.exec_driver_sql("PRAGMA foreign_key_check").first() if full else None
                    if integrity == "ok" and orphan is not None:
                        integrity = f"row {orphan[1]} of {orphan[0]} refers to a missing row of {orphan[2]}"
                    if integrity != "ok":
                        integrity += "; put a backup back with `python -m storage restore BACKUP`"
                elif self.database.url.get_backend_name() == "postgresql":
                    size = int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar() or 0)
                revision = MigrationContext.configure(connection).get_current_revision() or ""
                last = session.scalar(select(func.max(tables.Export.created)).filter_by(format="backup"))
                age = (now() - last).total_seconds() if last else None
        except StorageError as e:
            integrity = str(e)
        library = sqlite3.sqlite_version if path is not None else ""
        if path is not None:
            if sqlite3.sqlite_version_info < WAL_RACE_FIXED:
                fixed = ".".join(map(str, WAL_RACE_FIXED))
                warnings.append(
                    f"SQLite {library} has a rare bug that can corrupt data (fixed in {fixed}); keep backups, or upgrade Python"
                )
            if journal not in ("wal", ""):
                warnings.append(
                    f"journal mode is {journal}, not wal: is the file on a network drive? Writers will wait for readers"
                )
            if age is None:
                warnings.append("no backup yet: python -m storage backup")
            elif age > STALE_BACKUP_DAYS * 86_400:
                warnings.append(f"the last backup is {age / 86_400:.0f} days old: python -m storage backup")
        return Health(self.database.where, library, journal, integrity, size, revision, age, tuple(warnings))

    @operator_only
    def counts(self) -> dict[str, int]:
        """The number of rows in each table, all at the same moment."""
        with self.reading() as session:
            return {
                name: session.scalar(select(func.count()).select_from(table)) or 0
                for name, table in sorted(Base.metadata.tables.items())
            }


def restore(url: str, file: Path) -> Path | None:
    """Puts a backup in the database's place, as one transaction if the present one is intact, and returns the path of the
    present one.

    What was there is kept: an intact database as a backup, a damaged one renamed.  Raises InputError for a missing
    file, NewerDatabaseError, StorageError (a backup of an earlier schema, damaged, or with other tables than its schema has, disk
    full, database in use); then the database is as it was.
    """
    path = sqlite_path(parse_url(url))
    if path is None:
        raise InputError("only SQLite files are restored here; use your database server's own tools")
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    if path.exists() and file.samefile(path):
        raise InputError(f"{file} is the database itself; name a backup")
    check_backup(file)
    with creation_lock(path), storage_errors(f"{file} -> {path}"):
        previous = _exchange(file, path)
    ensure_current(url)
    return previous


def check_backup(path: Path) -> None:
    """Returns if the file has the bytes that `copy_database` wrote (a plain copy of a database has no checksum), exactly the tables,
    columns, indexes, triggers and views of this version's schema, and no damaged page, index or reference.

    Raises StorageError for any other file, NewerDatabaseError for a later revision.  Nothing is written.
    """
    revision = revision_of(path)
    if revision is None:
        raise StorageError(f"{path}: it is empty; {_UNCHANGED}")
    check_revision(revision, str(path))
    with path.open("rb") as file:
        header = file.read(100)
    if header[_WRITTEN_BY] == b"\1\1" and header[CHECKSUM_BYTES] != bytes(4) and header[CHECKSUM_BYTES] != checksum(path):
        raise DamagedError(f"{path}: the file was changed or damaged after the backup was made; {_UNCHANGED}")
    try:
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            _check_schema(connection, str(path), revision)
            verify(connection, str(path))
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
    changed = sorted({f"{kind} {name[:80]}" for (kind, name), _ in expected.items() ^ _definitions(connection).items()})
    if changed:
        raise StorageError(
            f"{database}: the file says that it has schema {revision}, and these parts are not as in it: {', '.join(changed[:5])}; {_UNCHANGED}"
        )


def _exchange(file: Path, path: Path) -> Path | None:
    """Puts `file` in the place of `path`, and returns the path to which the previous database went, None if there was none."""
    try:
        previous = backup_name(path, "before-restore") if revision_of(path) is not None else None
        if previous is not None:
            copy_database(path, previous)
    except DamagedError:
        previous = backup_name(path, "damaged")
        with replacing(path) as draft:
            copy_database(file, draft)  # before anything is moved: a full disk stops it here
            _unseal(draft)
            previous.parent.mkdir(exist_ok=True)
            for tail in ("-wal", "-shm", ""):  # a stale log would be played into the restored file
                with suppress(FileNotFoundError):
                    path.with_name(path.name + tail).replace(previous.with_name(previous.name + tail))
        return previous
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    # SQLite's own backup call is one write transaction on the target: programs that have it open see all of it or nothing
    with closing(sqlite3.connect(file, timeout=10)) as source, closing(sqlite3.connect(path, timeout=10)) as target:
        source.backup(target)
        verify(target, str(path))
    _unseal(path)
    return previous


def _unseal(path: Path) -> None:
    """Removes a backup's checksum from a database that is written to again, and ends the sign-ins of its time."""
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        connection.execute("PRAGMA application_id = 0")
        connection.execute("DELETE FROM sign_in")
        connection.commit()
