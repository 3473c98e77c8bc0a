"""PostgreSQL databases for tests: one with the present schema that is emptied for each test, and new ones without any."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url

from storage.schema.base import Base
from storage.schema.creation import ensure_current


def _admin(url: URL, statements: list[str]) -> None:
    engine = create_engine(url.set(drivername="postgresql+pg8000"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@contextmanager
def database(admin: str, *, current: bool = True) -> Iterator[str]:
    """The URL of a new database, of the present schema or without any; dropped afterwards.  `admin` may create databases."""
    server = make_url(admin)
    name = f"ambiscope_test_{uuid.uuid4().hex[:12]}"
    _admin(server, [f"CREATE DATABASE {name} TEMPLATE template0"])
    try:
        url = server.set(database=name).render_as_string(hide_password=False)
        if current:
            ensure_current(url)
        yield url
    finally:
        _admin(server, [f"DROP DATABASE {name} WITH (FORCE)"])


def empty(url: str) -> None:
    """Deletes every row, also of the tables whose triggers refuse that.  (TRUNCATE takes longer: it makes new files.)"""
    deletes = "; ".join(f'DELETE FROM "{name}"' for name in Base.metadata.tables)
    _admin(make_url(url), ["SET session_replication_role = replica", f"DO $$ BEGIN {deletes}; END $$"])
