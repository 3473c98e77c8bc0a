"""The whole database as JSON lines: a backup that moves between databases, read back into an empty one only.

After the head, each line is a row: {"kind": its table, "row": {column: value}}, in an order in which referenced rows come first.
Passwords and OpenID Connect subjects never leave the database, nor do sign-ins, failed or not, and the logs of files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Table, Text, func, insert, select, type_coerce
from sqlalchemy.orm import Session

from core.errors import AmbiscopeError, FormatError, InputError
from core.json_io import dumps
from core.trace import from_json, prediction_from_json
from core.types import Annotation, Passage
from storage.exchange.filters import Filters, Names
from storage.records import contents, gate
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_annotator, check_text
from storage.records.projects import GuidelineExample
from storage.records.results import check_judgment
from storage.schema.base import Base, Flag, JsonList, JsonText, PackedJson, UtcDateTime

LAYOUT = 4
EXCLUDED_TABLES = ("sign_in_wait", "sign_in", "export", "snapshot")
SECRET_COLUMNS: Mapping[str, tuple[str, ...]] = {"account": ("password", "subject")}
TABLES: Mapping[str, Table] = {t.name: t for t in Base.metadata.sorted_tables if t.name not in EXCLUDED_TABLES}
MAX_TEXT_CHARS = 1_000_000
_CHUNK = 20  # rows in memory: a trace may be large
DumpRow = dict[str, Any]


def _columns(table: Table) -> dict[str, Column[Any]]:
    return {c.name: c for c in table.columns if c.name not in SECRET_COLUMNS.get(table.name, ())}


# ---------------------------------------------------------------- out


def everything(session: Session, filters: Filters, names: Names, counts: Counter[str]) -> Iterator[str]:
    """The lines of a dump.  `filters` has no effect beyond the pseudonyms of `names`; with them, unfinished drafts are left out."""
    yield dumps({"kind": "ambiscope", "layout": LAYOUT})
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
            texts = {k: v if k in raw and v else dumps(v.isoformat() if isinstance(v, datetime) else v) for k, v in row.items()}
            fields = ",".join([f'"{k}":{text}' for k, text in texts.items()])
            counts[kind] += 1
            yield f'{{"kind":"{kind}","row":{{{fields}}}}}'


def _rename(kind: str, row: DumpRow, names: Names) -> None:
    if kind == "annotator":
        row["name"] = names(row["name"])
    elif kind == "activity":
        details = json.loads(row["details"])  # a digest of a name could be checked by those who guess the name
        row["details"] = dumps(names.inside({k: v for k, v in details.items() if not k.endswith("_digest")}))
    elif kind == "submission" and "sources" in (body := json.loads(row["body"])):
        row["body"] = dumps({**body, "sources": [[names(name), version] for name, version in body["sources"]]})


# ---------------------------------------------------------------- in


def check_line(line: DumpRow) -> DumpRow:
    """Checks and returns a line after the head.  Raises FormatError or InputError for one that its table couldn't hold or that
    couldn't be read back."""
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
    for column in columns.values():
        _check_value(column, row.get(column.name))
    for field, reader in READERS.get(table.name, {}).items():
        if row.get(field) is None:
            continue
        try:
            reader(row)
        except FormatError as e:
            raise FormatError(e.problem, field=e.field or field) from None
        except AmbiscopeError as e:
            raise FormatError(str(e), field=field) from None
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            raise FormatError(f"not the layout of this field ({type(e).__name__}: {str(e)[:80]})", field=field) from None
    return line


def _check_value(column: Column[Any], value: Any) -> None:
    field, kind = column.name, column.type
    if value is None:
        if not column.nullable:
            raise FormatError("missing", field=field)
    elif isinstance(kind, UtcDateTime):
        _time(value, field)
    elif isinstance(kind, JsonText | PackedJson):
        if not isinstance(value, list if isinstance(kind, JsonList) else dict):
            raise FormatError(f"expected {'a list' if isinstance(kind, JsonList) else 'an object'}", field=field)
    elif isinstance(kind, Flag):
        if not isinstance(value, bool):
            raise FormatError("expected true or false", field=field)
    elif kind.python_type is str:
        if not isinstance(value, str):
            raise FormatError(f"expected text, found {type(value).__name__}", field=field)
        check_text(value, f"field '{field}'", limit=MAX_TEXT_CHARS)
        choices: tuple[str, ...] = next((c.info[field] for c in column.table.constraints if field in c.info), ())
        if choices and value not in choices:
            raise FormatError(f"expected one of {', '.join(choices)}", field=field)
    elif isinstance(value, bool) or not isinstance(value, int if kind.python_type is int else int | float):
        raise FormatError(f"expected a {'whole ' * (kind.python_type is int)}number", field=field)


def _time(value: Any, field: str) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise FormatError("expected a time such as 2026-01-31T12:00:00+00:00", field=field) from None
    if time.tzinfo is None:
        raise FormatError("the time has no time zone", field=field)
    return time


def _text(field: str, limit: int) -> Callable[[DumpRow], Any]:
    return lambda row: check_text(row[field], "the value", limit=limit, empty=False)


def _texts(field: str) -> Callable[[DumpRow], Any]:
    def check(row: DumpRow) -> None:
        if not all(isinstance(v, str) for v in row[field]):
            raise FormatError("expected a list of texts")

    return check


def _content(row: DumpRow) -> None:
    gate.checked(contents.content_from_json(row["body"], row["stage"]), row["stage"])


# the functions by which the store reads a value; they raise for one that could not be read back
READERS: Mapping[str, Mapping[str, Callable[[DumpRow], Any]]] = {
    "annotator": {"name": lambda row: check_annotator(row["name"])},
    "question": {"public_id": _text("public_id", MAX_ID_CHARS), "text": _text("text", MAX_QUESTION_CHARS)},
    "qa_pair": {"answers": _texts("answers"), "passage_ids": _texts("passage_ids")},
    "prediction": {"trace": lambda row: prediction_from_json(row["trace"])},
    "predicted_answer": {"evidence": lambda row: [(e["passage_id"], e["start"], e["end"], e["text"]) for e in row["evidence"]]},
    "judgment": {"state": lambda row: check_judgment(row.get("verdict"), row["note"], row["state"])},
    "project": {
        "stages": _texts("stages"),
        "systems": _texts("systems"),
        "error_labels": _texts("error_labels"),
        "thresholds": lambda row: dict(row["thresholds"]),
    },
    "guideline": {"examples": lambda row: contents.all_from_json(GuidelineExample, row["examples"])},
    "project_item": {
        "gold": lambda row: gate.check_gold(contents.gold_from_json(row["gold"])),
        "references": lambda row: contents.all_from_json(Annotation, row["references"]),
        "passages": lambda row: contents.all_from_json(Passage, row["passages"]),
        "corrections": lambda row: from_json(contents.Corrections, row["corrections"]),
    },
    "submission": {"body": _content},
}


def require_empty(session: Session) -> None:
    """Raises InputError unless the database is empty."""
    for kind, table in TABLES.items():
        if session.execute(select(*table.primary_key).limit(1)).first() is not None:
            raise InputError(
                f"a jsonl export is a backup: it is read into an empty database only, and this one has a row of {kind}; name a new one "
                "with AMBISCOPE_HOME or AMBISCOPE_DATABASE_URL, or join two installations by the format ambignq-full"
            )


def store_line(session: Session, line: DumpRow) -> None:
    """Stores a checked line.  Raises IntegrityError if it contradicts another row or refers to a missing one."""
    table = TABLES[line["kind"]]
    times = {c.name for c in table.columns if isinstance(c.type, UtcDateTime)}
    row = {k: _time(v, k) if k in times and v is not None else v for k, v in line["row"].items()}
    session.connection().execute(insert(table), row)


def advance_sequences(session: Session) -> None:
    """Moves PostgreSQL's sequences past the ids of inserted rows."""
    if session.connection().dialect.name == "postgresql":
        for table in Base.metadata.sorted_tables:
            if "id" in table.c and (last := session.scalar(select(func.max(table.c.id)))) is not None:
                session.execute(select(func.setval(func.pg_get_serial_sequence(table.name, "id"), last)))
