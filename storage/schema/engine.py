"""Engine, pragmas, and the two transaction scopes.

SQLite in WAL mode: readers never wait for the writer.  Writes begin with BEGIN IMMEDIATE: a transaction that starts
with a read and then writes fails at once with SQLITE_BUSY_SNAPSHOT, whatever the busy timeout (measured: 320 of 480
with plain BEGIN, none with IMMEDIATE).  Reads begin with plain BEGIN, so they take no writer lock.  `synchronous=FULL`:
what was acknowledged survives a power cut.  Source: sqlite.org/wal.html, sqlite.org/pragma.html; SQLAlchemy, "SQLite:
serializable isolation / savepoints / transactional DDL".  PostgreSQL behaves alike: reads are REPEATABLE READ, and
writes take one advisory lock, so that tests of one are valid for the other.

A SQLite file can be moved, removed or replaced while it is open; what is written afterwards is lost.  `FileWatch` notices it.
"""

from __future__ import annotations

import copy
import math
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

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
CHECK_SECONDS = 1.0  # between two checks of the identity of the database file
_USER_VERSION_AT = 60  # bytes into a SQLite file: the id that `identify` gave it, 4 bytes (sqlite.org/fileformat.html)
ACCOUNTS_FILE = "accounts_file"  # of a database session's info: the file that exists where the installation has accounts
_BEGIN = "ambiscope_begin"  # execution option: the statement that opens a transaction


def now() -> datetime:
    return datetime.now(UTC)


def parse_url(url: str) -> URL:
    """Raises InputError for what is no database URL, and for SQLite in memory (each thread would see another database)."""
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


def identify(path: Path) -> None:
    """Gives a SQLite database an id of its own where it has none; copies and backups of it have the same.  Raises sqlite3.Error."""
    with closing(open_sqlite(path, isolation_level=None)) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            connection.execute(f"PRAGMA user_version = {secrets.randbelow(2**31 - 1) + 1}")


def _inode(path: Path) -> tuple[int, int] | None:
    """Device and inode, or None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class FileWatch:
    """Whether the file and the write-ahead log that are open are still those at their paths, and whether the file has its id.

    The id is read from the file itself: SQLite's own connections may see it in the log or in their caches.  The descriptor for
    that is closed after all connections, since closing any descriptor of a file ends a process's locks on it
    (sqlite.org/howtocorrupt.html, 2.2).
    """

    _shared: ClassVar[dict[tuple[int, int], tuple[int, int]]] = {}  # inode -> descriptor, and how many watches use it
    _lock = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, path.with_name(f"{path.name}-wal")
        self._inode: tuple[int, int] | None = None  # of the open file; None: nothing was opened yet
        self._id = self._descriptor = 0
        self._id_in_file = False  # a new id is in the log until the next checkpoint
        self._checked = -math.inf  # by time.monotonic()

    def on_connect(self, connection: sqlite3.Connection, info: dict[str, Any]) -> None:
        """After a connection was made; `info` is stored with it.  Raises ReplacedError."""
        info["log"] = _inode(self.log)
        with self._lock:
            if self._inode is None and (inode := _inode(self.path)) is not None:
                descriptor, users = self._shared.get(inode) or (os.open(self.path, os.O_RDONLY), 0)
                self._shared[inode] = descriptor, users + 1
                self._inode, self._descriptor, self._id_in_file = inode, descriptor, False
                self._id = int(connection.execute("PRAGMA user_version").fetchone()[0])
        self.check(info)

    def on_last_close(self) -> None:
        """After the last connection was closed."""
        with self._lock:
            if self._inode is None:
                return
            descriptor, users = self._shared.pop(self._inode)
            if users > 1:
                self._shared[self._inode] = descriptor, users - 1
            else:
                os.close(descriptor)
            self._inode = None

    def check(self, info: Mapping[str, Any] | None = None) -> None:
        """Checks now.  `info`: of a connection, whose log is checked too.  Raises ReplacedError."""
        self._checked = time.monotonic()
        if self._inode is None:
            return
        inode = _inode(self.path)
        if inode is None:
            raise self._error("was moved or removed")
        if inode != self._inode or self._has_another_id():
            raise self._error("was replaced by another one")
        if info and info["log"] is not None and _inode(self.log) != info["log"]:
            raise self._error(f"lost its log ({self.log.name} was moved, removed or replaced)")

    def check_sometimes(self, info: Mapping[str, Any]) -> None:
        """`check`, at most once in CHECK_SECONDS while all is well.  Raises ReplacedError."""
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            self.check(info)

    def _has_another_id(self) -> bool:
        with self._lock:
            if self._inode is None:
                return False
            os.lseek(self._descriptor, _USER_VERSION_AT, os.SEEK_SET)
            id_in_file = int.from_bytes(os.read(self._descriptor, 4), "big")
        if id_in_file == self._id:
            self._id_in_file = True
        return self._id_in_file and id_in_file != self._id

    def _error(self, event: str) -> ReplacedError:
        self._checked = -math.inf
        return ReplacedError(
            f"{self.path}: the database file {event} while Ambiscope is running: nothing is stored any more; "
            "put the file back, or put a backup back with `python -m storage restore BACKUP` and restart Ambiscope"
        )


def make_engine(url: URL, *, watch: FileWatch | None = None) -> Engine:
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

    def connect() -> sqlite3.Connection:
        if watch is not None:
            watch.check()
        return open_sqlite(path, check_same_thread=False)

    engine = create_engine(url, creator=connect)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself; the "begin" event below does
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")  # first: the next pragma may have to wait
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()
        if watch is not None:
            watch.on_connect(connection, record.info)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    return engine


def _begin_postgres(connection: Connection) -> None:
    """The same promises as SQLite's: a reader sees one moment, and writers come one after another.

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
    """The database file is not intact: put a backup back."""


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
    """A StorageError in words for what SQLite or SQLAlchemy raised."""
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
    """Turns database errors into core.errors: ConflictError for a version that moved on, StorageError for the rest."""
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
        self.watch = FileWatch(self.path) if self.path else None
        self.engine = make_engine(url, watch=self.watch)
        # SQLite's busy timeout polls, so that of many waiting threads some are never lucky.  Waiting here also holds no connection of the pool
        self._queue = _writer_queues.setdefault(url.render_as_string(hide_password=False), FairLock())
        self.accounts_file = accounts_file(self.path) if self.path else None
        info = {ACCOUNTS_FILE: self.accounts_file}
        # attributes stay readable after the commit; no ORM row leaves the package anyway
        self._reads = sessionmaker(self.engine, expire_on_commit=False, info=info)
        self._writes = sessionmaker(writing_engine(self.engine), expire_on_commit=False, info={**info, "writing": True})

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One read transaction: everything read in it is of the same moment.  Raises ReplacedError."""
        with storage_errors(self.where), self._reads() as session, session.begin():
            self._admit(session)
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One write transaction: committed at the end, rolled back by any exception.

        Raises ReplacedError, and OutcomeUnknownError where the server went away during the commit.
        """
        if not self._queue.acquire(timeout=BUSY_TIMEOUT_MS / 1000):
            raise explain(TimeoutError("database is locked"), self.where)
        try:
            with storage_errors(self.where), self._writes() as session, self._committed(session):
                self._admit(session)
                yield session
                if self.watch is not None:  # before each commit: what is acknowledged is in the file at the path
                    self.watch.check(session.connection().info)
        finally:
            self._queue.release()

    def _admit(self, session: Session) -> None:
        """At the start of each transaction.  Raises ReplacedError, or what the guard raises."""
        if self.watch is not None:
            self.watch.check_sometimes(session.connection().info)
        if self.guard is not None:
            self.guard(session)

    def check_file(self) -> None:
        """Raises ReplacedError where a SQLite file is not the one that was opened."""
        if self.watch is not None:
            with self.reading() as session:
                self.watch.check(session.connection().info)

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
        if self.watch is not None:
            self.watch.on_last_close()


class Part:
    """A part of the store: its public methods, each one transaction of its database.

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
