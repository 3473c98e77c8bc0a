"""Rows of an import into the database: each is new, or there and equal, or refused.

Lines of a dump are checked and stored by the record of their table in storage.exchange.kinds; rows of AmbigNQ become such lines.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import AmbiscopeError, FormatError, InputError
from core.metrics.score.files import parse_reference
from core.trace import to_json
from core.types import Question, ReferenceQuestion
from storage.access.actors import annotator_row, refuse_confusable
from storage.exchange.imports.predictions import content_key, prediction_of, question_of
from storage.exchange.kinds import KINDS, MAX_TEXT_CHARS, TARGETS, Kind, Row
from storage.records.answer_sets import check_annotation
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_annotator, check_text
from storage.results.predictions import insert_prediction, plain_trace, question_row
from storage.schema import tables, workbench
from storage.schema.base import Flag, JsonText, PackedJson, UtcDateTime
from storage.schema.engine import now

_CACHED = 50_000  # references kept at a time
_NAMES = 1000  # characters of what a row is referred to by


def check_line(row: Row) -> None:
    """A line after the first.  Raises FormatError or InputError for one that the tables could not hold, or that could not be read back."""
    kind = row.get("kind")
    if kind == "ambiscope":
        raise FormatError("the header occurs twice: two exports in one file")
    spec = KINDS.get(kind) if isinstance(kind, str) else None
    if spec is None:
        raise FormatError(f"unknown kind {str(kind)[:40]!r}", field="kind")
    columns = spec.table.__table__.c
    for name, target in spec.refs.items():
        for field, is_text in _fields_of(target).items():
            if row.get(field) is not None or not columns[name].nullable:
                _check_reference(target, field, row.get(field), is_text)
    for name in spec.columns():
        _check_value(spec, columns[name], row)
    if spec.nested and row.get(spec.nested.field) is None:
        raise FormatError("missing", field=spec.nested.field)
    for field in spec.readers:
        if row.get(field) is not None:
            _read(spec, field, row)


@lru_cache(maxsize=32)
def _fields_of(target: str) -> dict[str, bool]:
    """The fields of a reference, and whether each is text."""
    return {str(c.key): c.type.python_type is str for c in TARGETS[target].selected_columns if c.key != "id"}


def _check_reference(target: str, field: str, value: Any, is_text: bool) -> None:
    if not is_text:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise FormatError("expected a whole number from 0", field=field)
    elif not isinstance(value, str):
        raise FormatError(f"expected the name or id of a {target}", field=field)
    elif target == "annotator":
        check_annotator(value)
    else:
        check_text(value, f"field '{field}'", limit=_NAMES, empty=False)


def _read(spec: Kind, field: str, row: Row) -> Any:
    """What a field says, as far as it has a reader of its own.  Raises FormatError."""
    reader = spec.readers.get(field)
    try:
        return reader(row) if reader is not None else row[field]
    except FormatError as e:
        raise FormatError(e.problem, field=e.field or field) from None
    except AmbiscopeError as e:
        raise FormatError(str(e), field=field) from None
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise FormatError(f"not the layout of this field ({type(e).__name__}: {str(e)[:80]})", field=field) from None


def _check_value(spec: Kind, column: Any, row: Row) -> None:
    field, kind = spec.called(column.key), column.type
    value = row.get(field)
    if value is None:
        if not column.nullable and (field in row or column.server_default is None):
            raise FormatError("missing", field=field)
    elif isinstance(kind, UtcDateTime):
        _time(value, field)
    elif isinstance(kind, Flag):
        if not isinstance(value, bool):
            raise FormatError("expected true or false", field=field)
    elif isinstance(kind, JsonText | PackedJson):
        wanted = list if "list" in str(spec.table.__annotations__.get(column.key, "")) else dict
        if not isinstance(value, wanted):
            raise FormatError(f"expected {'a list' if wanted is list else 'an object'}", field=field)
    elif kind.python_type is int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise FormatError("expected a whole number", field=field)
    elif kind.python_type is float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise FormatError("expected a number", field=field)
    elif not isinstance(value, str):
        raise FormatError(f"expected text, found {type(value).__name__}", field=field)
    else:
        check_text(value, f"field '{field}'", limit=MAX_TEXT_CHARS)
        allowed: tuple[str, ...] = next((c.info[column.key] for c in column.table.constraints if column.key in c.info), ())
        if allowed and value not in allowed:
            raise FormatError(f"expected one of {', '.join(allowed)}", field=field)


def _time(value: Any, field: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise FormatError("expected a time such as 2026-01-31T12:00:00+00:00", field=field) from None
    if found.tzinfo is None:
        raise FormatError("the time has no time zone", field=field)
    return found


class Lines:
    """Stores checked lines."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._found: dict[tuple[Any, ...], int] = {}
        self._renamed: dict[tuple[Any, ...], int] = {}  # rows that bear another id here than in the file
        job = workbench.ProjectJob
        self._growing = set(session.scalars(select(job.project_id).where(job.kind == "items")))

    def store(self, row: Row) -> bool:
        """True: new.  Raises InputError for a reference to what is not there, and for a row that contradicts a stored one."""
        kind = row["kind"]
        spec = KINDS[kind]
        table = spec.table
        values: Row = {name: self.row_of(target, row) for name, target in spec.refs.items()}
        for name in spec.columns():
            if (field := spec.called(name)) in row:
                value = row[field]
                is_time = isinstance(table.__table__.c[name].type, UtcDateTime)
                values[name] = _time(value, field) if is_time and value is not None else value
        if spec.nested:
            values[spec.nested.field] = row[spec.nested.field]
        values |= spec.made_of(values)
        known = self._known(table, values, spec.unique)
        if known is not None:
            self._compare(kind, spec, known, values, row)
        elif spec.equal:
            known = self._known(table, values, spec.equal)
        if known is not None:
            if "public_id" in values and known.public_id != values["public_id"]:
                self._renamed[kind, values["public_id"]] = known.id
            return False
        self._refuse_taken(kind, spec, values)
        if kind in ("annotator", "project"):
            refuse_confusable(values["name"], self.session.scalars(select(table.name)))
        if kind == "item" and values["project_id"] in self._growing:
            raise InputError("questions are being added to this project right now: wait until they are, then import again")
        if spec.store is not None:
            spec.store(self.session, table, values)
        else:
            self.session.add(table(**values))
        self.session.flush()
        self.session.expunge_all()  # traces are large: keep none of them
        return True

    def _known(self, table: Any, values: Mapping[str, Any], columns: tuple[str, ...]) -> Any:
        wanted = {name: values[name] for name in columns}
        return self.session.scalar(select(table).filter_by(**wanted).options(undefer("*")).limit(1))

    def _compare(self, kind: str, spec: Kind, known: Any, values: Row, row: Row) -> None:
        """Raises InputError where the stored row says something else."""
        told = [name for name in (*spec.refs, *spec.columns()) if name in values and name not in spec.free]
        stored = {name: getattr(known, name) for name in told}
        if spec.nested:
            stored[spec.nested.field] = next(spec.nested.values(self.session, [known.id]))
        for name, value in stored.items():
            field = spec.refs.get(name) or spec.called(name)
            if value == values[name]:
                continue
            if name in spec.refs or _read(spec, field, {**row, field: value}) != _read(spec, field, row):
                what = kind.replace("_", " ")
                who = f"'{row['annotator']}' has another {what}" if row.get("annotator") else f"this {what} has another content"
                raise InputError(f"{who} stored: '{field}' differs")

    def _refuse_taken(self, kind: str, spec: Kind, values: Row) -> None:
        """Raises InputError where another row bears the new one's id, key or name."""
        table = spec.table
        for column in table.__table__.columns:
            value = values.get(column.key)
            if (
                column.unique
                and (column.key,) != spec.unique
                and value is not None
                and self._known(table, values, (column.key,)) is not None
            ):
                field = spec.called(column.key)
                raise InputError(f"the {field} '{str(value)[:80]}' belongs to another stored {kind.replace('_', ' ')}")

    def row_of(self, target: str, row: Row) -> int | None:
        """The row that a line's fields name, None where they name none.  Raises InputError where it is not there."""
        fields = list(_fields_of(target))
        names = [row.get(field) for field in fields]
        if names == [None]:
            return None
        key = (target, *names)
        known = self._renamed.get(key, self._found.get(key))
        if known is not None:
            return known
        if target == "annotator":
            made = annotator_row(self.session, row["annotator"]).id
        else:
            query = TARGETS[target]
            columns = {c.key: c for c in query.selected_columns}
            found = self.session.scalar(query.where(*(columns[f] == name for f, name in zip(fields, names, strict=True))))
            if found is None:
                shown = ", ".join(f"{field} '{str(name)[:80]}'" for field, name in zip(fields, names, strict=True))
                raise InputError(f"there is no {target} with {shown}, on an earlier line or stored")
            made = int(found)
        if len(self._found) >= _CACHED:
            self._found.clear()
        self._found[key] = made
        return made


def ambignq_of(row: Row) -> ReferenceQuestion:
    """A row of AmbigNQ light or full.  Raises FormatError or InputError."""
    if "ctxs" in row:
        raise FormatError("this is a row of a fid file, which is derived: import the jsonl or ambignq file it came from")
    found = parse_reference(row, none_allowed=True)
    check_text(found.id, "field 'id'", limit=MAX_ID_CHARS)
    check_text(found.question, "field 'question'", limit=MAX_QUESTION_CHARS)
    for annotation in found.annotations:
        check_annotation(annotation, complete=True)
    return found


class Importer:
    """Rows of one file into one transaction.  `stored` and `known` count them by kind."""

    def __init__(self, session: Session, annotator: str) -> None:
        self.session, self.prefix = session, annotator
        self.lines = Lines(session)
        self.stored: Counter[str] = Counter()
        self.known: Counter[str] = Counter()

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def line(self, row: Row) -> None:
        self.count(row["kind"], self.lines.store(row))

    def ambignq(self, row: Row) -> None:
        found = ambignq_of(row)
        public_id = self._question(Question(found.question, id=found.id))
        moment = now().isoformat()
        for number, annotation in enumerate(found.annotations, 1):
            said = {"stage": "generation", "state": "submitted", "version": 1, "created": moment, "updated": moment}
            who = {"question": public_id, "annotator": f"{self.prefix} {number}"}
            try:
                self.line({"kind": "annotation", **who, **said, "annotation": to_json(annotation)})
            except InputError as e:
                raise InputError(f"{e}; import under another --annotator") from None

    def question(self, row: Row) -> None:
        self._question(question_of(row))

    def _question(self, question: Question) -> str:
        """The public id of the question, which is stored where it is new."""
        table = tables.Question
        found = self.session.scalar(select(table.public_id).filter_by(text=question.text, source_id=question.id))
        if found is None:  # an export names a question by its public id, which may be that of a question without an id
            found = self.session.scalar(select(table.public_id).filter_by(text=question.text, public_id=question.id))
        self.count("question", found is None)
        return question_row(self.session, question).public_id if found is None else found

    def prediction(self, row: Row) -> None:
        """A prediction of another program: known by its content."""
        made = prediction_of(row)
        key = content_key(made)
        new = self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is None
        if new:
            trace = plain_trace(made)
            insert_prediction(self.session, made, trace=trace, public_id=uuid.uuid4().hex, key=key, created=now())
            self.session.expire_all()  # traces are large: keep none of them
        self.count("prediction", new)
