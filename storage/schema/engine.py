"""Engine, pragmas, and the two transaction scopes.

SQLite in WAL mode: readers never wait for the writer.  Writes begin with BEGIN IMMEDIATE: a transaction that starts
with a read and then writes fails at once with SQLITE_BUSY_SNAPSHOT, whatever the busy timeout (measured: 320 of 480
with plain BEGIN, none with IMMEDIATE).  Reads begin with plain BEGIN, so they take no writer lock.  `synchronous=FULL`:
what was acknowledged survives a power cut.  Source: sqlite.org/wal.html, sqlite.org/pragma.html; SQLAlchemy, "SQLite:
serializable isolation / savepoints / transactional DDL".  PostgreSQL behaves alike: reads are REPEATABLE READ, and
writes take one advisory lock, so that tests of one are valid for the other.

A SQLite file can be moved, removed or replaced while it is open; what is written afterwards is lost.  So each write transaction begins with
a comparison of the open file, and its write-ahead log, with those at their paths.  Damage of the content is SQLite's to report.
"""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.orm.exc import StaleDataError

from core.errors import ConflictError, InputError, OutcomeUnknownError, StorageError
from core.models.scheduling.turns import FairLock

BUSY_TIMEOUT_MS = 10_000
SYNCHRONOUS = "FULL"  # each commit reaches the disk; NORMAL may lose the last ones in a power cut
MIN_SQLITE = (3, 37, 0)  # STRICT tables
WRITER_LOCK = 0x616D6269  # PostgreSQL's advisory lock of the one writer
ACCOUNTS_FILE = "accounts_file"  # of a database session's info: the file that exists where the installation has accounts
_BEGIN = "ambiscope_begin"  # execution option: the statement that opens a transaction


def now() -> datetime:
    return datetime.now(UTC)


def parse_url(url: str) -> URL:
    """Raises InputError for an invalid database URL, and for SQLite in memory (each thread would see another database)."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InputError("AMBISCOPE_DATABASE_URL is not a database URL; use sqlite:////absolute/path.db") from None
    if parsed.get_backend_name() == "sqlite":
        name = parsed.database or ""
        if not name or name == ":memory:" or name.startswith("file:"):
            raise InputError(f"the database '{url}' must be a file: sqlite:////absolute/path.db")
    if parsed.drivername == "postgresql":  # no driver named: the one of requirements.txt
        parsed = parsed.set(drivername="postgresql+pg8000")
    return parsed


def sqlite_path(url: URL) -> Path | None:
    """The database file, or None for another kind of database."""
    return Path(url.database).absolute() if url.get_backend_name() == "sqlite" and url.database else None


def accounts_file(path: Path) -> Path:
    """Beside the database; it exists once somebody can sign in (storage.access.actors)."""
    return path.with_name(f"{path.name}.accounts")


class ReplacedError(StorageError):
    """The database file was moved, removed or replaced while it was open."""


def open_sqlite(path: Path, timeout: float = 10.0, **options: Any) -> sqlite3.Connection:
    """A connection to a database file, which is never created.  `timeout`: seconds to wait for a lock.  Raises sqlite3.Error."""
    connection: sqlite3.Connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=timeout, **options
    )
    return connection


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None where there is none."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def make_engine(url: URL) -> Engine:
    """An engine whose every connection has the pragmas of this module.

    Raises InputError for a URL whose driver is not installed, StorageError for a SQLite library without STRICT tables.
    """
    if url.get_backend_name() != "sqlite":
        try:
            engine = create_engine(url, pool_pre_ping=True)  # a server may have closed what the pool holds
        except (ImportError, NoSuchModuleError) as e:
            raise InputError(f"no driver for {url.render_as_string(hide_password=True)}: {e}") from None
        if url.get_backend_name() == "postgresql":
            event.listen(engine, "begin", _begin_postgres)
        return engine
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        raise StorageError(f"SQLite {sqlite3.sqlite_version} is too old: {'.'.join(map(str, MIN_SQLITE))} or newer is needed")
    path = sqlite_path(url)
    assert path is not None

    engine = create_engine(url, creator=lambda: open_sqlite(path, check_same_thread=False))

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself; the "begin" event below does
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")  # first: the next pragma may have to wait
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    return engine


def _begin_postgres(connection: Connection) -> None:
    """Makes PostgreSQL keep the same promises as SQLite: a reader sees one moment, and writers come one after another.

    The lock is one of the database (not of a schema in it) and ends with the transaction.
    """
    if connection.get_execution_options().get(_BEGIN):
        connection.exec_driver_sql(
            f"SELECT set_config('lock_timeout', '{BUSY_TIMEOUT_MS}ms', true), pg_advisory_xact_lock({WRITER_LOCK})"
        )
    else:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def writing_engine(engine: Engine) -> Engine:
    """The same pool; transactions take the writer lock when they begin."""
    return engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})


class DamagedError(StorageError):
    """The database file isn't intact: restore a backup."""


_BUSY = f"another program has been writing for {BUSY_TIMEOUT_MS // 1000} s: nothing was changed; do it again"
_REASONS = {
    "disk is full": "the disk is full: nothing was changed; free some space, then do it again",
    "database is locked": _BUSY,
    "lock timeout": _BUSY,
    "malformed": "the file is damaged: it was left as it is; put a backup back with `python -m storage restore BACKUP`",
    "not a database": "the file is no SQLite database or its head is damaged: it was left as it is; put a backup back with "
    "`python -m storage restore BACKUP`, or use another AMBISCOPE_HOME",
    "readonly": "the file or its folder may not be written: nothing was changed; correct the permissions",
    "unable to open": "the file cannot be opened: check that the folder exists and may be written",
    "disk i/o error": "the disk refused (full, over quota, or failing): nothing was changed; free some space, then do it again",
}
_DAMAGE = ("malformed", "not a database")
_CONNECTION_LOST = ("", "08", "57")  # classes of PostgreSQL's errors; none: the driver's own


def _sqlstate(error: Exception) -> str:
    """PostgreSQL's five characters of an error, or nothing: classes 22 and 23 are refused values and rows."""
    original = getattr(error, "orig", None)
    fields = original.args[0] if original is not None and original.args and isinstance(original.args[0], dict) else {}
    return str(getattr(original, "sqlstate", None) or fields.get("C", ""))


def explain(error: Exception, database: str) -> StorageError:
    """Puts an error of SQLite or SQLAlchemy into words, as a StorageError."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    for sign, words in _REASONS.items():
        if sign in text.lower():
            kind = DamagedError if sign in _DAMAGE else StorageError
            return kind(f"{database}: {words}")
    if isinstance(error, IntegrityError) or _sqlstate(error)[:2] in ("22", "23"):
        return StorageError(f"{database}: the database refused a row ({text}): nothing was changed")
    return StorageError(f"{database}: {text}: nothing was changed")


@contextmanager
def storage_errors(database: str) -> Iterator[None]:
    """Turns database errors into core.errors: ConflictError for a version that has changed, StorageError for the rest."""
    try:
        yield
    except StaleDataError:
        raise ConflictError(f"{database}: somebody else changed the same row in between: load it again, then save") from None
    except (SQLAlchemyError, sqlite3.Error, ConnectionError) as e:  # pg8000 does not wrap the error of a broken connection
        raise explain(e, database) from e


_writer_queues: dict[str, FairLock] = {}  # by URL: the writers of this process run one after another, first come, first served


class Database:
    """One engine and its two transaction scopes.  Nothing may hold a scope across a page rerun or a model call."""

    guard: Callable[[Session], None] | None = None

    def __init__(self, url: URL) -> None:
        self.url = url
        self.path = sqlite_path(url)
        self.where = str(self.path) if self.path else url.render_as_string(hide_password=True)
        self.engine = make_engine(url)
        if self.path is not None:
            self._file = _identity(self.path)
            event.listen(self.engine, "connect", self._note_log)
        # SQLite's busy timeout polls, so that of many waiting threads some are never lucky.  Waiting here also holds no connection of the pool
        self._queue = _writer_queues.setdefault(url.render_as_string(hide_password=False), FairLock())
        self.accounts_file = accounts_file(self.path) if self.path else None
        info = {ACCOUNTS_FILE: self.accounts_file}
        # attributes stay readable after the commit; no ORM row leaves the package anyway
        self._reads = sessionmaker(self.engine, expire_on_commit=False, info=info)
        self._writes = sessionmaker(writing_engine(self.engine), expire_on_commit=False, info={**info, "writing": True})

    def _note_log(self, connection: sqlite3.Connection, record: Any) -> None:
        """Called after a connection was opened.  Raises ReplacedError if it opened another file than the first one."""
        connection.execute("PRAGMA schema_version")  # opens the log
        record.info["log"] = _identity(self._log)
        self._check_file(record.info)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One read transaction: everything read in it is of the same moment."""
        with storage_errors(self.where), self._reads() as session, session.begin():
            if self.guard is not None:
                self.guard(session)
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One write transaction: committed at the end, rolled back by any exception.

        Raises ReplacedError, and OutcomeUnknownError if the server went away during the commit.
        """
        if not self._queue.acquire(timeout=BUSY_TIMEOUT_MS / 1000):
            raise explain(TimeoutError("database is locked"), self.where)
        try:
            with storage_errors(self.where), self._writes() as session, self._committed(session):
                self._check_file(session.connection().info)
                if self.guard is not None:
                    self.guard(session)
                yield session
        finally:
            self._queue.release()

    @property
    def _log(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.name}-wal")

    def _check_file(self, info: dict[Any, Any]) -> None:
        """`info`: of a connection.  Raises ReplacedError."""
        if self.path is not None and (self._file, info["log"]) != (_identity(self.path), _identity(self._log)):
            raise ReplacedError(
                f"{self.path}: the database file or its log (-wal) was moved, removed or replaced while Ambiscope is running: nothing is "
                "stored any more; put the file back, or put a backup back with `python -m storage restore BACKUP` and restart Ambiscope"
            )

    def check_file(self) -> None:
        """Raises ReplacedError if a SQLite file is not the one that was opened."""
        with self.reading() as session:
            self._check_file(session.connection().info)

    @contextmanager
    def _committed(self, session: Session) -> Iterator[None]:
        """One transaction.  Raises OutcomeUnknownError."""
        ending = False
        try:
            with session.begin():
                yield
                session.flush()
                ending = self.url.get_backend_name() == "postgresql"
        except (SQLAlchemyError, ConnectionError) as error:
            if ending and _sqlstate(error)[:2] in _CONNECTION_LOST:
                raise OutcomeUnknownError(
                    f"{self.where}: the connection was lost while a change was being saved, and it is not known whether it was saved: see "
                    "whether it is there once the database is back, before you do it again"
                ) from error
            raise

    def guarded(self, guard: Callable[[Session], None]) -> Database:
        """The same engine, with `guard` called first in each transaction; what it raises ends it."""
        database = copy.copy(self)
        database.guard = guard
        return database

    def close(self) -> None:
        """Closes all connections; the last one folds the WAL into the file."""
        self.engine.dispose()


class Part:
    """A part of the store.  Its public methods are each one transaction of its database.

    Each says who may call it (storage.access.permissions).  A session's part has `database_for`: it gives the database of one
    call, in which the session is checked for the method's action; the part's `database` refuses every transaction.
    """

    database_for: Callable[[str | None], Database] | None = None

    def __init__(self, database: Database) -> None:
        self.database = database

    def __init_subclass__(cls) -> None:
        if unmarked := [
            name for name, member in vars(cls).items() if name[0] != "_" and callable(member) and not hasattr(member, "action")
        ]:
            raise TypeError(f"{cls.__name__}.{unmarked[0]} does not say who may call it")

    def acting(self, action: str | None) -> Self:
        """This part for one call; `action`: None for the local operator's."""
        if self.database_for is None:
            return self
        part = copy.copy(self)
        part.database, part.database_for = self.database_for(action), None
        return part

    def reading(self) -> AbstractContextManager[Session]:
        return self.database.reading()

    def writing(self) -> AbstractContextManager[Session]:
        return self.database.writing()
