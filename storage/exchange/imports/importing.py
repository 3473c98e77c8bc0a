"""The inverse of export, all or nothing; and files of other programs.

| format | file | gives |
|---|---|---|
| `jsonl` | Ambiscope's own dump | everything in it, into an empty database |
| `ambignq` | AmbigNQ light or full | questions, and annotations of `annotator` 1, 2, ... |
| `predictions` | JSON lines: traces, `ask --json`, or {question, system, answers} (storage.exchange.imports.predictions) | predictions |
| `questions` | a list or lines of {question, id}; other fields are ignored | questions |

A file is read once, in one transaction: wrong rows are collected by line, and where there are any, nothing is stored.  Importing the same
answer sets again stores nothing.  A row that contradicts a stored one is refused, never merged.  `fid`, `training` and the tables are derived
and not read back.
"""

from __future__ import annotations

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
from storage.results.predictions import find_question, plain_trace, put_prediction, question_row
from storage.results.standing import pairs_of
from storage.schema import tables
from storage.schema.engine import Part, now

MAX_REASONS = 100  # refused rows that an error names
FORMATS = ("ambignq", "questions", "predictions", "jsonl")
Rows = Iterator[tuple[int, Any, str | None]]
_PEEK_BYTES = 1 << 20  # a first line with passages of its own may be long


def _first(path: Path) -> tuple[bytes, bytes]:
    """The first character that is no blank, and the first line, up to _PEEK_BYTES bytes."""
    with open_file(path) as file:
        start = file.read(_PEEK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
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
    except FormatError:  # long or broken: a trace, or what the check will refuse
        start = line.lstrip(b"{ ")
        return "predictions" if start.startswith((b'"question"', b'"id"', b'"prediction"')) else "jsonl"
    if isinstance(row, dict) and "kind" not in row:
        if "events" in row or "prediction" in row or ("answers" in row and "system" in row):
            return "predictions"
        if "question" in row and not {"answers", "negatives"} <= row.keys():
            return "questions"
    return "jsonl"


def rows_of(path: Path, format: str = "") -> Rows:
    """(line, row, problem) of JSON lines or, unless `format` is "jsonl", of a JSON list."""
    listed = _first(path)[0] == b"[" and format != "jsonl"
    return storable(array_rows(read_text(path), path) if listed else jsonl_rows(path))


class Rejects:
    """The refused rows of a file; the reasons of the first MAX_REASONS."""

    def __init__(self, file: object) -> None:
        self.file, self.total = file, 0
        self.rows: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        self.total += 1
        if self.total <= MAX_REASONS:
            self.rows.append((line, " ".join(reason.split())[:300]))

    def settle(self) -> None:
        """Raises RejectedRowsError where a row was refused."""
        if self.total:
            raise RejectedRowsError(self.file, tuple(self.rows), self.total)


def ambignq_of(row: Mapping[str, Any]) -> ReferenceQuestion:
    """A row of AmbigNQ light or full.  Raises FormatError or InputError."""
    if "ctxs" in row:
        raise FormatError("this is a row of a fid file, which is derived: import the jsonl or ambignq file it came from")
    question = parse_reference(row, none_allowed=True)
    check_text(question.id, "field 'id'", limit=MAX_ID_CHARS)
    check_text(question.question, "field 'question'", limit=MAX_QUESTION_CHARS)
    for annotation in question.annotations:
        check_annotation(annotation, complete=True)
    return question


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

    def ambignq(self, reference: ReferenceQuestion) -> None:
        question = self.question(Question(reference.question, id=reference.id))
        for number, annotation in enumerate(reference.annotations, 1):
            self.count("annotation", self._annotation(question, f"{self.prefix} {number}", annotation))
        self.session.expunge_all()

    def _annotation(self, question: int, annotator: str, annotation: Annotation) -> bool:
        """True: new.  Raises InputError where this person has another annotation of the question."""
        annotator_id, moment = annotator_row(self.session, annotator).id, now()
        key = {"question_id": question, "annotator_id": annotator_id, "stage": "generation"}
        existing = self.session.scalar(select(tables.Annotation).filter_by(**key))
        if existing is not None:
            pairs = pairs_of(self.session, [existing.id]).get(existing.id, ())
            if (existing.state, existing.type, pairs) != ("submitted", annotation.type, annotation.pairs):
                raise InputError(f"'{annotator}' has another annotation stored; import under another --annotator")
            return False
        state = {"type": annotation.type, "state": "submitted", "version": 1, "created": moment, "updated": moment}
        row = tables.Annotation(**key, **state)
        self.session.add(row)
        self.session.flush()
        write_pairs(self.session, row, annotation.pairs)
        return True

    def question(self, question: Question) -> int:
        """The row of the question, which is stored where it is new."""
        row = find_question(self.session, question)
        self.count("question", row is None)
        return (row or question_row(self.session, question)).id

    def prediction(self, prediction: Prediction) -> None:
        """A prediction of another program: known by its content."""
        trace = plain_trace(prediction)
        key = content_key(trace)
        self.count("prediction", self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is None)
        put_prediction(self.session, prediction, trace, key)
        self.session.expire_all()  # traces are large: keep none of them


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
    importer, rejects, rows = _Importer(session, annotator), Rejects(path), rows_of(path, format)
    # the function that checks and reads a row, and the one that stores it
    steps: dict[str, tuple[Callable[[Row], Any], Callable[[Any], object]]] = {
        "ambignq": (ambignq_of, importer.ambignq),
        "questions": (question_of, importer.question),
        "predictions": (prediction_of, importer.prediction),
        "jsonl": (check_line, importer.line),
    }
    reader, store = steps[format]
    if format == "jsonl":
        require_empty(session)
        rows = _after_header(rows, path)
    for line, value, problem in rows:
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(value, dict):
                raise FormatError("expected an object")
            record = reader(value)
            if format != "jsonl" or not rejects.total:  # else it may refer to a row that was refused
                store(record)
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
        """Stores a file of one of the formats of storage.exchange.imports.importing, all or nothing; rows that are already there and equal
        are counted as known.  A jsonl export is a backup: it is stored in an empty database only.

        AmbigNQ names no annotators: the n-th annotation of each question goes to `annotator` n.  Raises
        RejectedRowsError with the wrong rows by line, FormatError for broken syntax, InputError for an unreadable file,
        StorageError; then nothing was stored.
        """
        if format not in ("auto", *FORMATS):
            raise InputError(
                f"format '{format}' cannot be imported; use {', '.join(FORMATS)} (training files and tables are derived)"
            )
        if format == "auto":
            format = detect_format(path)
        with self.writing() as session:
            return store_file(session, path, format, annotator)
