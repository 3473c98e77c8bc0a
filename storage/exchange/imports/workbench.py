"""The workbench's tables out of a dump, by the rule that wrote them (storage.exchange.dump.KINDS): checked field by field, then stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, select
from sqlalchemy.orm import Session

from core.errors import AmbiscopeError, FormatError, InputError
from storage.exchange.dump import KINDS, NATURAL, Kind
from storage.people.actors import annotator_row
from storage.records.checks import check_annotator, check_text
from storage.records.projects import AUTOMATIC
from storage.schema import workbench
from storage.schema.engine import Flag, JsonText, UtcDateTime
from storage.schema.tables import Base
from storage.tasks import contents

Row = dict[str, Any]
MAX_TEXT_CHARS = 1_000_000
_CACHED = 50_000  # references kept at a time


def field_of(column: str) -> str:
    """What a column is called in the file."""
    return "what" if column == "kind" else column


def check_workbench(kind: str, row: Row) -> None:
    """Raises FormatError or InputError for a row that the tables could not hold, or that could not be read back."""
    spec = KINDS[kind]
    for column, target in spec.refs.items():
        if row.get(target) is None and spec.table.__table__.c[column].nullable:
            continue
        value = row.get(target)
        if not isinstance(value, str):
            raise FormatError(f"expected the name or id of a {target}", field=target)
        if target == "annotator" and value != AUTOMATIC:
            check_annotator(value)
        check_text(value, f"field '{target}'", limit=1000, empty=False)
    for name in spec.columns():
        _check_value(spec, name, row)
    for what, check in _BODIES.get(kind, {}).items():
        if row.get(what) is not None:
            try:
                check(row)
            except AmbiscopeError as e:
                raise FormatError(str(e), field=what) from None
            except (KeyError, TypeError, ValueError, AttributeError) as e:
                raise FormatError(f"not the layout of this field ({type(e).__name__}: {str(e)[:80]})", field=what) from None


def _check_value(spec: Kind, name: str, row: Row) -> None:
    column, field = spec.table.__table__.c[name], field_of(name)
    value = row.get(field)
    if value is None:
        if not column.nullable:
            raise FormatError("missing", field=field)
        return
    kind: Any = column.type
    if isinstance(kind, UtcDateTime):
        _time(value, field)
    elif isinstance(kind, Flag):
        if not isinstance(value, bool):
            raise FormatError("expected true or false", field=field)
    elif isinstance(kind, JsonText):
        wanted = list if "list" in str(spec.table.__annotations__.get(name, "")) else dict
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
        allowed = _choices(spec.table.__table__, name)
        if allowed and value not in allowed:
            raise FormatError(f"expected one of {', '.join(allowed)}", field=field)


def _choices(table: Any, column: str) -> tuple[str, ...]:
    """The values of an enumeration, from the table's own CHECK constraint; empty where it is none."""
    start = f"{column} IN ('"
    for constraint in table.constraints:
        rule = str(constraint.sqltext) if isinstance(constraint, CheckConstraint) else ""
        if rule.startswith(start) and rule.endswith("')"):  # one that goes on says more than which values there are
            return tuple(part.strip(" '()") for part in rule[len(column) + 3 :].split(","))
    return ()


def _time(value: Any, field: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise FormatError("expected a time such as 2026-01-31T12:00:00+00:00", field=field) from None
    if found.tzinfo is None:
        raise FormatError("the time has no time zone", field=field)
    return found


def _texts(row: Row, name: str) -> None:
    if not all(isinstance(v, str) for v in row[name]):
        raise FormatError("expected a list of texts")


def _content(row: Row) -> None:
    contents.check_content(contents.content_from_json(row["body"], row["stage"]), row["stage"])


def _thresholds(row: Row) -> None:
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in row["thresholds"].values()):
        raise FormatError("expected numbers")


def _passages(row: Row) -> None:
    for passage in contents.passages_from_json(row["passages"]) or ():
        for text in (passage.id, passage.title, passage.text):
            check_text(text, "a passage", limit=MAX_TEXT_CHARS)


_BODIES: Mapping[str, Mapping[str, Callable[[Row], Any]]] = {
    "project": {
        "stages": lambda row: _texts(row, "stages"),
        "systems": lambda row: _texts(row, "systems"),
        "thresholds": _thresholds,
    },
    "guideline": {"examples": lambda row: contents.examples_from_json(row["examples"])},
    "item": {
        "gold": lambda row: contents.check_gold(contents.gold_from_json(row["gold"])),
        "references": lambda row: contents.annotations_from_json(row["references"]),
        "passages": _passages,
    },
    "submission": {"body": _content},
}


class WorkbenchRows:
    """Stores checked rows.  `questions`: id in the file -> row, as the question lines told."""

    def __init__(self, session: Session, questions: Mapping[str, int]) -> None:
        self.session, self.questions = session, questions
        self._found: dict[tuple[str, str], int] = {}
        job = workbench.ProjectJob
        self._growing = set(session.scalars(select(job.project_id).where(job.kind == "items")))

    def store(self, kind: str, row: Row) -> bool:
        """True: new.  Raises InputError for a reference to what is not there, and for a row that contradicts a stored one."""
        spec = KINDS[kind]
        values: Row = {c: self._reference(t, row.get(t)) for c, t in spec.refs.items()}
        for name in spec.columns():
            value = row.get(field_of(name))
            is_time = isinstance(spec.table.__table__.c[name].type, UtcDateTime)
            values[name] = _time(value, name) if is_time and value is not None else value
        for name in spec.never:
            values[name] = None
        known = self.session.scalar(select(spec.table).filter_by(**self._unique(spec, values)).limit(1))
        if known is None:
            if kind == "item" and values["project_id"] in self._growing:
                raise InputError("questions are being added to this project right now: wait until they are, then import again")
            made: Base = spec.table(**values)
            self.session.add(made)
            self.session.flush()
            self.session.expunge(made)
            return True
        for name, value in values.items():
            if name not in spec.never and getattr(known, name) != value:
                raise InputError(f"another {kind.replace('_', ' ')} is stored in its place: '{field_of(name)}' differs")
        return False

    def _unique(self, spec: Kind, values: Row) -> Row:
        columns = {target: column for column, target in spec.refs.items()}
        return {columns.get(name, name): values[columns.get(name, name)] for name in spec.unique}

    def _reference(self, target: str, name: str | None) -> int | None:
        if name is None:
            return None
        if target == "question":
            found: int | None = self.questions.get(name)
            if found is None:
                raise InputError(f"question '{name[:80]}' is on no earlier line")
            return found
        known = self._found.get((target, name))
        if known is not None:
            return known
        if target == "annotator":
            made = annotator_row(self.session, name).id
        else:
            column = NATURAL[target]
            row = self.session.scalar(select(column.class_.id).where(column == name))
            if row is None:
                raise InputError(f"there is no {target} '{name[:80]}', on an earlier line or stored")
            made = int(row)
        if len(self._found) >= _CACHED:
            self._found.clear()
        self._found[target, name] = made
        return made
