"""The inverse of export, all or nothing; and files of other programs.

| format | file | gives |
|---|---|---|
| `jsonl` | Ambiscope's own dump | everything in it, into an empty database |
| `ambignq` | AmbigNQ light or full | questions, and annotations of `annotator` 1, 2, ... |
| `predictions` | JSON lines: traces, `ask --json`, or {question, system, answers} (storage.exchange.imports.predictions) | predictions |
| `questions` | a list or lines of {question, id}; other fields are let by | questions |

A file is read once, in one transaction: the wrong rows are collected by line, and where there are some, nothing is stored.  Importing the same answer sets again stores nothing.  A row that contradicts what is stored is refused, never merged.
`fid`, `training` and the tables are derived and not read back.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.errors import AmbiscopeError, FormatError, InputError
from core.json_io import Decoder, array_rows, jsonl_rows, open_file, read_text
from core.metrics.score.files import parse_reference
from core.types import Annotation, Prediction, QAPair, Question, ReferenceQuestion
from storage.access.actors import annotator_row
from storage.access.permissions import operator_only
from storage.exchange.dump import LAYOUT, advance_sequences, check_line, require_empty, store_line
from storage.exchange.imports.predictions import Row, content_key, prediction_of, question_of
from storage.records.answer_sets import check_annotation
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_text, storable
from storage.records.results import ImportReport, RejectedRowsError
from storage.results.predictions import insert_prediction, plain_trace, question_row
from storage.results.standing import pairs_of
from storage.schema import tables
from storage.schema.engine import Part, now

KEPT_REASONS = 100
FORMATS = ("ambignq", "questions", "predictions", "jsonl")
Rows = Iterator[tuple[int, Any, str | None]]
_HEAD = 4096


def _first(path: Path) -> tuple[bytes, bytes]:
    """The first character that says something, and the first line as far as it is short."""
    with open_file(path) as file:
        start = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1], start.split(b"\n", 1)[0]


def detect_format(path: Path) -> str:
    """`ambignq` for a JSON list; for lines of objects what the first one is: `jsonl`, `predictions`, or `questions`.

    Raises InputError for a missing file, FormatError for others.
    """
    first, line = _first(path)
    if first == b"[":
        return "ambignq"
    if first != b"{":
        raise FormatError(
            "neither a JSON list (AmbigNQ, questions) nor JSON lines (Ambiscope's jsonl, predictions, questions)",
            file=path,
            line=1,
        )
    try:
        row, _, _ = Decoder().read(line.decode("utf-8", "replace"))
    except FormatError:  # long or broken: a trace, or whatever the check will say
        found = line.lstrip(b"{ ")
        return (
            "jsonl"
            if found.startswith(b'"kind"') or not found.startswith((b'"question"', b'"id"', b'"prediction"'))
            else "predictions"
        )
    if isinstance(row, dict) and "kind" not in row:
        if "events" in row or "prediction" in row or ("answers" in row and "system" in row):
            return "predictions"
        if "question" in row and not {"answers", "negatives"} <= row.keys():
            return "questions"
    return "jsonl"


def _rows(path: Path, format: str) -> Rows:
    listed = _first(path)[0] == b"[" and format != "jsonl"
    return storable(array_rows(read_text(path), path) if listed else jsonl_rows(path))


class _Rejects:
    def __init__(self, path: Path) -> None:
        self.path, self.total = path, 0
        self.rows: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        self.total += 1
        if self.total <= KEPT_REASONS:
            self.rows.append((line, " ".join(reason.split())[:300]))

    def settle(self) -> None:
        if self.total:
            raise RejectedRowsError(self.path, tuple(self.rows), self.total)


def ambignq_of(row: Mapping[str, Any]) -> ReferenceQuestion:
    """A row of AmbigNQ light or full.  Raises FormatError or InputError."""
    if "ctxs" in row:
        raise FormatError("this is a row of a fid file, which is derived: import the jsonl or ambignq file it came from")
    found = parse_reference(row, none_allowed=True)
    check_text(found.id, "field 'id'", limit=MAX_ID_CHARS)
    check_text(found.question, "field 'question'", limit=MAX_QUESTION_CHARS)
    for annotation in found.annotations:
        check_annotation(annotation, complete=True)
    return found


def _after_header(rows: Rows, path: Path) -> Rows:
    """The lines of a dump after its head.  Raises FormatError for a file that is not Ambiscope's jsonl, or of another layout."""
    for first in rows:
        line, row, problem = first
        if problem or not isinstance(row, dict):  # a broken first line is one wrong row, not a foreign file
            yield first
        elif row.get("kind") != "ambiscope":
            hint = " (a training file is derived; import the jsonl it came from)" if "answers" in row else ""
            raise FormatError(f"this is not a jsonl export of Ambiscope{hint}", file=path, line=line)
        elif (layout := row.get("layout")) != LAYOUT:
            raise FormatError(f"layout {layout!r}; this Ambiscope reads {LAYOUT}", file=path, line=line, field="layout")
        break
    yield from rows


class _Importer:
    """Rows of one file into one transaction.  `stored` and `known` count them by kind."""

    def __init__(self, session: Session, annotator: str) -> None:
        self.session, self.prefix = session, annotator
        self.stored: Counter[str] = Counter()
        self.known: Counter[str] = Counter()

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def line(self, row: Row) -> None:
        """Of a dump."""
        store_line(self.session, row)
        self.count(row["kind"], True)

    def ambignq(self, found: ReferenceQuestion) -> None:
        question = self._question(Question(found.question, id=found.id))
        for number, annotation in enumerate(found.annotations, 1):
            self.count("annotation", self._annotation(question, f"{self.prefix} {number}", annotation))
        self.session.expunge_all()

    def _annotation(self, question: int, annotator: str, annotation: Annotation) -> bool:
        """True: new.  Raises InputError where this person has another annotation of the question."""
        who, moment = annotator_row(self.session, annotator).id, now()
        place = {"question_id": question, "annotator_id": who, "stage": "generation"}
        known = self.session.scalar(select(tables.Annotation).filter_by(**place))
        if known is not None:
            pairs = pairs_of(self.session, [known.id]).get(known.id, ())
            if (known.state, known.type, pairs) != ("submitted", annotation.type, annotation.pairs):
                raise InputError(f"'{annotator}' has another annotation stored; import under another --annotator")
            return False
        state = {"type": annotation.type, "state": "submitted", "version": 1, "created": moment, "updated": moment}
        row = tables.Annotation(**place, **state)
        self.session.add(row)
        self.session.flush()
        write_pairs(self.session, row, annotation.pairs)
        return True

    def question(self, question: Question) -> None:
        self._question(question)

    def _question(self, question: Question) -> int:
        """The row of the question, which is stored where it is new."""
        table = tables.Question
        found = self.session.scalar(select(table.id).filter_by(text=question.text, source_id=question.id))
        if found is None:  # an export names a question by its public id, which may be that of a question without an id
            found = self.session.scalar(select(table.id).filter_by(text=question.text, public_id=question.id))
        self.count("question", found is None)
        return question_row(self.session, question).id if found is None else found

    def prediction(self, made: Prediction) -> None:
        """A prediction of another program: known by its content."""
        key = content_key(made)
        new = self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is None
        if new:
            trace = plain_trace(made)
            insert_prediction(self.session, made, trace=trace, public_id=uuid.uuid4().hex, key=key, created=now())
            self.session.expire_all()  # traces are large: keep none of them
        self.count("prediction", new)


def write_pairs(session: Session, row: tables.Annotation, pairs: Sequence[QAPair]) -> None:
    """The pairs of an annotation that has none yet."""
    for position, pair in enumerate(pairs):
        session.add(
            tables.QaPair(
                annotation_id=row.id,
                position=position,
                question=pair.question,
                answers=list(pair.answers),
                passage_ids=list(pair.passage_ids),
            )
        )
    session.flush()


def store_file(session: Session, path: Path, format: str, annotator: str) -> ImportReport:
    """Stores a file inside the caller's transaction.  Raises RejectedRowsError with every row that is wrong or contradicts the database,
    FormatError where the syntax ends, InputError for a dump where the database is not empty; the caller rolls back.
    """
    importer, rejects, rows = _Importer(session, annotator), _Rejects(path), _rows(path, format)
    steps: dict[str, tuple[Callable[[Row], Any], Callable[[Any], None]]] = {  # what checks and reads a row, and what stores it
        "ambignq": (ambignq_of, importer.ambignq),
        "questions": (question_of, importer.question),
        "predictions": (prediction_of, importer.prediction),
        "jsonl": (check_line, importer.line),
    }
    read, store = steps[format]
    if format == "jsonl":
        require_empty(session)
        rows = _after_header(rows, path)
    for line, value, problem in rows:
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(value, dict):
                raise FormatError("expected an object")
            made = read(value)
            if format != "jsonl" or not rejects.total:  # else it may refer to a row that was refused
                store(made)
        except IntegrityError as e:  # a rule that only the database knows; the transaction is over
            rejects.add(line, f"the database refused it ({e.orig})")
            break
        except AmbiscopeError as e:
            rejects.add(line, str(e))
    rejects.settle()
    if format == "jsonl":
        advance_sequences(session)
    return ImportReport(str(path), format, dict(importer.stored), dict(importer.known))


class Imports(Part):
    """The part of the Store about files that come in."""

    @operator_only
    def import_file(self, path: Path, *, format: str = "auto", annotator: str = "ambignq") -> ImportReport:
        """Stores a file of one of the formats of storage.exchange.imports.importing, all or nothing; what is already there and equal is
        counted as known.  A jsonl export is a backup: it is stored in an empty database only.

        AmbigNQ names no annotators: the n-th annotation of each question goes to `annotator` n.  Raises
        RejectedRowsError with the wrong rows by line, FormatError for broken syntax, InputError for an unreadable file,
        StorageError; then nothing was stored.
        """
        if format not in ("auto", *FORMATS):
            known = ", ".join(FORMATS)
            raise InputError(f"format '{format}' cannot be imported; use {known} (training files and tables are derived)")
        chosen = detect_format(path) if format == "auto" else format
        with self.writing() as session:
            return store_file(session, path, chosen, annotator)
