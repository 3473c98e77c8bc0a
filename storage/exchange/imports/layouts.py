"""The documented layouts of what `import` reads, row by row, without the database.

Each check raises FormatError or InputError naming the field; importing adds file and line.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args

from core.errors import FormatError
from core.trace import prediction_from_json
from core.types import Annotation, QAPair, Question
from storage.exchange.dump import KINDS
from storage.exchange.imports.workbench import check_workbench
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_annotator, check_text
from storage.records.results import Stage, State
from storage.results.annotations import annotation_from_json, check_annotation
from storage.results.evaluation_rows import MAX_LABEL_CHARS
from storage.results.labels import check_judgment
from storage.results.predictions import plain_trace

Row = dict[str, Any]


def _text(row: Row, name: str, limit: int = MAX_ID_CHARS, *, empty: bool = False) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise FormatError(f"expected text, found {type(value).__name__ if name in row else 'nothing'}", field=name)
    return check_text(value, f"field '{name}'", limit=limit, empty=empty)


def _count(row: Row, name: str, least: int) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise FormatError(f"expected a whole number from {least}", field=name)
    return value


def read_time(row: Row, name: str) -> datetime:
    try:
        value = datetime.fromisoformat(_text(row, name))
    except ValueError:
        raise FormatError("expected a time such as 2026-01-31T12:00:00+00:00", field=name) from None
    if value.tzinfo is None:
        raise FormatError("the time has no time zone", field=name)
    return value


def _choice(row: Row, name: str, kind: Any) -> str:
    if row.get(name) not in get_args(kind):
        raise FormatError(f"expected one of {', '.join(get_args(kind))}", field=name)
    return str(row[name])


def _aliases(value: Any, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(v, str) and v.strip() for v in value):
        raise FormatError("expected a list of one or more answers", field=field)
    return tuple(value)


def _evidence(body: Row, field: str) -> tuple[str, ...]:
    """The passages of a pair, which AmbigNQ itself has not."""
    value = body.get("passages", [])
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise FormatError("expected a list of passage ids", field=f"{field}.passages")
    return tuple(value)


def check_ambignq(row: Row) -> tuple[Question, list[Annotation]]:
    """A row of AmbigNQ light or full.  Of the full version's fields, each pair's passages are kept (ours), the others are let by.  Raises FormatError or InputError."""
    if "ctxs" in row:
        raise FormatError("this is a row of a fid file, which is derived: import the jsonl or ambignq file it came from")
    question = Question(_text(row, "question", MAX_QUESTION_CHARS), id=_text(row, "id"))
    if not isinstance(row.get("annotations"), list) or not row["annotations"]:
        raise FormatError("expected a list of one or more annotations", field="annotations")
    found = []
    for i, body in enumerate(row["annotations"]):
        where = f"annotations[{i}]"
        kind = body.get("type") if isinstance(body, dict) else None
        if kind == "singleAnswer":
            aliases = _aliases(body.get("answer"), f"{where}.answer")
            annotation = Annotation("single", (QAPair(question.text, aliases, _evidence(body, where)),))
        elif kind == "multipleQAs":
            pairs = body.get("qaPairs")
            if not isinstance(pairs, list) or not all(
                isinstance(p, dict) and isinstance(p.get("question"), str) for p in pairs
            ):
                raise FormatError("expected a list of objects with question and answer", field=f"{where}.qaPairs")
            built = [
                QAPair(
                    p["question"],
                    _aliases(p.get("answer"), f"{where}.qaPairs[{j}].answer"),
                    _evidence(p, f"{where}.qaPairs[{j}]"),
                )
                for j, p in enumerate(pairs)
            ]
            annotation = Annotation("multiple", tuple(built))
        elif kind == "noAnswer":
            annotation = Annotation("none")
        else:
            raise FormatError("expected singleAnswer, multipleQAs or noAnswer", field=f"{where}.type")
        check_annotation(annotation, complete=True)
        found.append(annotation)
    return question, found


def _check_words(row: Row) -> None:
    _text(row, "prediction")
    _count(row, "position", 0)
    check_annotator(_text(row, "annotator"))
    if "verdict" not in row:
        raise FormatError("missing", field="verdict")
    check_judgment(row["verdict"], _text(row, "note", 10**6, empty=True), row.get("state"))
    _count(row, "version", 1)


def check_line(row: Row) -> None:
    """A line of Ambiscope's jsonl after the first.  Raises FormatError or InputError."""
    match row.get("kind"):
        case "annotator":
            check_annotator(_text(row, "name"))
            read_time(row, "created")
        case "question":
            _text(row, "id"), _text(row, "source_id", empty=True), _text(row, "text", MAX_QUESTION_CHARS)
            read_time(row, "created")
        case "annotation" | "annotation_revision" as kind:
            _text(row, "question")
            check_annotator(_text(row, "annotator"))
            _choice(row, "stage", Stage)
            state = _choice(row, "state", State)
            check_annotation(annotation_from_json(row.get("annotation")), complete=state == "submitted")
            _count(row, "version", 1)
            for name in ("created", "updated") if kind == "annotation" else ("saved", "replaced"):
                read_time(row, name)
        case "prediction":
            _text(row, "id")
            if row.get("key") is not None:
                _text(row, "key")
            read_time(row, "created")
            prediction = prediction_from_json(row.get("prediction"))
            check_text(prediction.question.text, "the question", limit=MAX_QUESTION_CHARS, empty=False)
            plain_trace(prediction)
        case "judgment":
            _check_words(row)
            read_time(row, "created"), read_time(row, "updated")
        case "judgment_revision":
            _check_words(row)
            read_time(row, "saved"), read_time(row, "replaced")
            if not isinstance(row.get("cleared"), bool):
                raise FormatError("expected true or false", field="cleared")
        case "evaluation":
            _text(row, "id")
            for name in ("system", "corpus", "questions"):
                _text(row, name, 4 * MAX_ID_CHARS, empty=True)
            for name in ("metrics", "report"):
                if not isinstance(row.get(name), dict):
                    raise FormatError("expected an object", field=name)
            if "label" in row:  # exports of schema 0001 have none
                _text(row, "label", MAX_LABEL_CHARS, empty=True)
            if row.get("finished") is not None:
                read_time(row, "finished")
            read_time(row, "created")
        case str() as kind if kind in KINDS:
            check_workbench(kind, row)
        case "ambiscope":
            raise FormatError("the header occurs twice: two exports in one file")
        case kind:
            raise FormatError(f"unknown kind {str(kind)[:40]!r}", field="kind")
