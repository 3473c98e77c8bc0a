"""The whole database as JSON lines: a backup that moves between databases, read back into an empty one only.

After the head, each line is a row: {"kind": its table, "row": {column: value}}, in an order in which what is referred to comes first.
Passwords and OpenID Connect subjects never leave the database, nor do sign-ins, failed or not, and the logs of files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Table, Text, func, insert, select, type_coerce
from sqlalchemy.orm import Session

from core.errors import FormatError, InputError
from core.json_io import dumps
from storage.exchange.filters import Filters, Names
from storage.schema.base import Base, JsonText, UtcDateTime

LAYOUT = 4
EXCLUDED_TABLES = ("sign_in_wait", "sign_in", "export", "snapshot")
SECRET_COLUMNS: Mapping[str, tuple[str, ...]] = {"account": ("password", "subject")}
TABLES: Mapping[str, Table] = {t.name: t for t in Base.metadata.sorted_tables if t.name not in EXCLUDED_TABLES}
_CHUNK = 20  # rows in memory: a trace may be large
Row = dict[str, Any]


def _columns(table: Table) -> dict[str, Column[Any]]:
    return {c.name: c for c in table.columns if c.name not in SECRET_COLUMNS.get(table.name, ())}


# ---------------------------------------------------------------- out


def everything(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """The lines of a dump.  Of `filters` only the pseudonyms count; with them, unfinished drafts are left out."""
    yield dumps({"kind": "ambiscope", "layout": LAYOUT})
    for kind, line in _lines(session, names):
        counts[kind] += 1
        yield line


def _lines(session: Session, names: Names) -> Iterator[tuple[str, str]]:
    for kind, table in TABLES.items():
        if kind == "draft" and names.pseudonyms:  # whatever a page put there, names too
            continue
        columns = _columns(table)
        raw = {name for name, column in columns.items() if isinstance(column.type, JsonText)}  # goes out as it is stored
        query = select(*(type_coerce(c, Text()) if name in raw else c for name, c in columns.items()))
        for values in session.execute(query.order_by(*table.primary_key).execution_options(yield_per=_CHUNK)):
            row = dict(zip(columns, values, strict=True))
            if names.pseudonyms:
                _rename(kind, row, names)
            fields = (f'"{k}":{v if k in raw and v is not None else dumps(_plain(v))}' for k, v in row.items())
            yield kind, f'{{"kind":"{kind}","row":{{{",".join(fields)}}}}}'


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _rename(kind: str, row: Row, names: Names) -> None:
    if kind == "annotator":
        row["name"] = names(row["name"])
    elif kind == "activity":
        row["details"] = dumps(names.inside(json.loads(row["details"])))
    elif kind == "submission" and "sources" in (body := json.loads(row["body"])):
        row["body"] = dumps({**body, "sources": [[names(name), version] for name, version in body["sources"]]})


# ---------------------------------------------------------------- in


def check_line(line: Row) -> Row:
    """A line after the head, as its table takes it.  What the values must be is the database's to say.  Raises FormatError for another layout."""
    kind, row = line.get("kind"), line.get("row")
    if kind == "ambiscope":
        raise FormatError("the header occurs twice: two exports in one file")
    table = TABLES.get(kind) if isinstance(kind, str) else None
    if table is None:
        raise FormatError(f"unknown kind {str(kind)[:40]!r}", field="kind")
    if not isinstance(row, dict):
        raise FormatError("expected an object", field="row")
    columns = _columns(table)
    if unknown := sorted(row.keys() - columns.keys()):
        raise FormatError(f"{kind} has no such column", field=unknown[0][:40])
    times = {name for name, column in columns.items() if isinstance(column.type, UtcDateTime)}
    return {"kind": kind, "row": {k: _time(v, k) if k in times and v is not None else v for k, v in row.items()}}


def _time(value: Any, field: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise FormatError("expected a time such as 2026-01-31T12:00:00+00:00", field=field) from None
    if found.tzinfo is None:
        raise FormatError("the time has no time zone", field=field)
    return found


def require_empty(session: Session) -> None:
    """Raises InputError unless the database is empty."""
    for kind, table in TABLES.items():
        if session.execute(select(*table.primary_key).limit(1)).first() is not None:
            raise InputError(
                f"a jsonl export is a backup: it is read into an empty database only, and this one has a row of {kind}; name a new one "
                "with AMBISCOPE_HOME or AMBISCOPE_DATABASE_URL, or join two installations by the format ambignq-full"
            )


def store_line(session: Session, line: Row) -> None:
    """Stores a checked line.  Raises IntegrityError or DataError for what its table refuses, or what contradicts another row."""
    session.connection().execute(insert(TABLES[line["kind"]]), line["row"])


def advance_sequences(session: Session) -> None:
    """After rows with ids of their own: PostgreSQL's next ones come after them."""
    if session.connection().dialect.name == "postgresql":
        for table in Base.metadata.sorted_tables:
            if "id" in table.c and (last := session.scalar(select(func.max(table.c.id)))) is not None:
                session.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), last)))
