"""Everything but failed sign-ins and the logs of files, as JSON lines of a kind each: moving, merging and keeping a database.

What refers to something comes after it, by its public name and never by a row's number, so that two databases can be joined.  Passwords
and OpenID Connect subjects never leave the database.  Every table is written by its record in storage.exchange.kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Text, select, type_coerce
from sqlalchemy.orm import Session

from core.json_io import dumps
from storage.exchange.filters import Filters, Names
from storage.exchange.kinds import KINDS, TARGETS, Kind, Row

LAYOUT = 3
_CHUNK = 20  # rows in memory: a trace may be large


def everything(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """The lines of a dump.  Of `filters` only the pseudonyms count; with them, unfinished drafts are left out."""
    yield dumps({"kind": "ambiscope", "layout": LAYOUT})
    for kind, line in _lines(session, names):
        counts[kind] += 1
        yield line


def _lines(session: Session, names: Names) -> Iterator[tuple[str, str]]:
    for kind, spec in KINDS.items():
        if kind == "draft" and names.pseudonyms:  # whatever a page put there, names too
            continue
        for row in _table(session, spec):
            if row.get("annotator") is not None:
                row["annotator"] = names(row["annotator"])
            raw = f',"{spec.called(spec.raw)}":{row.pop(spec.called(spec.raw))}}}' if spec.raw else "}"
            yield kind, dumps({"kind": kind, **spec.renamed(row, names)})[:-1] + raw


def _table(session: Session, spec: Kind) -> Iterator[Row]:
    """The rows of a table in the order in which they came."""
    table, keys, columns = spec.table, list(spec.table.__table__.primary_key), spec.columns()
    fields = [spec.called(name) for name in columns]
    query = select(*keys, *(_column(table, name, spec) for name in columns))
    for name, target in spec.refs.items():
        column, named = getattr(table, name), TARGETS[target].subquery()
        query = query.join(named, named.c.id == column, isouter=table.__table__.c[name].nullable)
        shown = [c for c in named.c if c.name != "id"]
        query = query.add_columns(*shown)
        fields += [c.name for c in shown]
    if spec.hidden is not None:
        query = query.where(~spec.hidden(table))
    found = session.execute(query.order_by(*keys).execution_options(yield_per=_CHUNK))
    for part in found.partitions():
        nested = spec.nested.values(session, [row[0] for row in part]) if spec.nested else None
        for values in part:
            row = dict(zip(fields, map(_plain, values[len(keys) :]), strict=True))
            if spec.nested and nested:
                row[spec.nested.field] = next(nested)
            yield row


def _column(table: Any, name: str, spec: Kind) -> Any:
    column = getattr(table, name)
    return type_coerce(column, Text()) if name == spec.raw else column


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
