"""The inverse of export, all or nothing, and imports of other programs' files.

| format | file | gives |
|---|---|---|
| `jsonl` | Ambiscope's own dump | everything in it, into an empty database |
| `ambignq` | AmbigNQ light or full | questions, and annotations of `annotator` 1, 2, ... |
| `predictions` | JSON lines: traces, `ask --json`, or {question, system, answers} (storage.exchange.imports.predictions) | predictions |
| `questions` | every other layout of storage.exchange.imports.question_files | questions, and their answers as annotations of `annotator` 1 |

A file is stored in one transaction: wrong rows are collected by line, and where there are any, nothing is stored.  Importing the same
answer sets again stores nothing.  A row that contradicts a stored one is refused, never merged.  `fid`, `training` and the tables are derived
and not read back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.datasets import refuse_other_layouts
from core.errors import AmbiscopeError, FormatError, InputError
from core.json_io import Decoder, array_rows, jsonl_rows, open_file, read_text
from core.types import Annotation, Prediction, QAPair, Question, ReferenceQuestion
from storage.access.actors import annotator_row
from storage.access.permissions import operator_only
from storage.exchange.dump import LAYOUT, advance_sequences, check_line, require_empty, store_line
from storage.exchange.imports.predictions import PredictionRow, content_key, prediction_of
from storage.exchange.imports.question_files import NumberedRows, ambignq_of, checked, questions_to_annotate
from storage.exchange.imports.rejects import Rejects
from storage.records.checks import storable
from storage.records.results import ImportReport
from storage.results.predictions import find_question, plain_trace, put_prediction, question_row
from storage.results.standing import pairs_of
from storage.schema import tables
from storage.schema.engine import Part, now

FORMATS = ("ambignq", "questions", "predictions", "jsonl")
_PEEK_BYTES = 1 << 20  # a first line with passages of its own may be long


def _first(path: Path) -> tuple[bytes, bytes]:
    """The first non-blank character, and the text from there on, up to _PEEK_BYTES bytes."""
    with open_file(path) as file:
        start = file.read(_PEEK_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1], start


def detect_format(path: Path) -> str:
    """`jsonl`, `predictions`, `ambignq` or `questions`, by the first row.

    Raises InputError for a missing file, FormatError for others.
    """
    first, start = _first(path)
    if first not in (b"[", b"{"):
        raise FormatError(
            "neither a JSON list (AmbigNQ, questions) nor JSON lines (Ambiscope's jsonl, predictions, questions)",
            file=path,
            line=1,
        )
    is_list = first == b"["
    try:
        row, _, _ = Decoder().read(start.removeprefix(b"[").lstrip().decode("utf-8", "replace"))
    except FormatError:  # long or broken: a trace, a list of whole articles, or what the check will refuse
        if is_list or start.split(b"\n", 1)[0].strip() == b"{":
            return "ambignq" if is_list else "questions"
        is_prediction = start.lstrip(b"{ ").startswith((b'"question"', b'"id"', b'"prediction"'))
        return "predictions" if is_prediction else "jsonl"
    fields = row.keys() if isinstance(row, dict) else set()
    if not is_list and ("kind" in fields or {"question", "answers", "negatives"} <= fields):
        return "jsonl"
    if not is_list and (fields & {"events", "prediction"} or {"answers", "system"} <= fields):
        return "predictions"
    try:
        refuse_other_layouts(row if fields else {})
    except FormatError as error:
        raise FormatError(error.problem, file=path) from None
    return "ambignq" if is_list and ("annotations" in fields or "question" not in fields) else "questions"


def rows_of(path: Path, format: str = "") -> NumberedRows:
    """(line, row, problem) of JSON lines or, unless `format` is "jsonl", of a JSON list."""
    listed = _first(path)[0] == b"[" and format != "jsonl"
    return storable(array_rows(read_text(path), path) if listed else jsonl_rows(path))


def _after_header(rows: NumberedRows, path: Path) -> NumberedRows:
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
    """Puts the rows of one file into one transaction.  `stored` and `known` count them by kind."""

    def __init__(self, session: Session, annotator: str) -> None:
        self.session, self.prefix = session, annotator
        self.stored: Counter[str] = Counter()
        self.known: Counter[str] = Counter()

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def line(self, row: PredictionRow) -> None:
        """Stores a line of a dump."""
        store_line(self.session, row)
        self.count(row["kind"], True)

    def reference(self, reference: ReferenceQuestion) -> None:
        question = self.question(Question(reference.question, id=reference.id))
        for number, annotation in enumerate(reference.annotations, 1):
            self.count("annotation", self._annotation(question, f"{self.prefix} {number}", annotation))
        self.session.expunge_all()

    def _annotation(self, question: int, annotator: str, annotation: Annotation) -> bool:
        """True if it is new.  Raises InputError if this person has another annotation of the question."""
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
        """The question's row, stored if it is new."""
        row = find_question(self.session, question)
        self.count("question", row is None)
        return (row or question_row(self.session, question)).id

    def prediction(self, prediction: Prediction) -> None:
        """Stores another program's prediction, which is identified by its content."""
        trace = plain_trace(prediction)
        key = content_key(trace)
        self.count("prediction", self.session.scalar(select(tables.Prediction.id).filter_by(key=key)) is None)
        put_prediction(self.session, prediction, trace, key)
        self.session.expire_all()  # traces are large: keep none of them


def without_passages(reference: ReferenceQuestion, path: Path) -> ReferenceQuestion:
    """The question, checked.  Raises FormatError for one with passages of its own, which only a project holds, and for what cannot be stored."""
    try:
        if reference.passages is not None:
            raise InputError(
                "it brings passages, which only a project holds: add the file there with python -m storage add-questions (a fid file "
                "is derived: import the jsonl or ambignq file it came from)"
            )
        return checked(reference)
    except InputError as error:
        raise FormatError(f"question '{(reference.id or reference.question)[:80]}': {error}", file=path) from None


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
    importer = _Importer(session, annotator)
    if format == "questions":
        for reference in questions_to_annotate(path, str(path)):
            importer.reference(without_passages(reference, path))
        return ImportReport(str(path), format, dict(importer.stored), dict(importer.known))
    rows, rejects = rows_of(path, format), Rejects(path, is_list=format != "jsonl" and _first(path)[0] == b"[")
    # the function that checks and reads a row, and the one that stores it
    steps: dict[str, tuple[Callable[[PredictionRow], Any], Callable[[Any], object]]] = {
        "ambignq": (ambignq_of, importer.reference),
        "predictions": (prediction_of, importer.prediction),
        "jsonl": (check_line, importer.line),
    }
    reader, store = steps[format]
    if format == "jsonl":
        require_empty(session)
        rows = _after_header(rows, path)
    for index, (line, value, problem) in enumerate(rows):
        try:
            if problem:
                raise FormatError(problem)
            if not isinstance(value, dict):
                raise FormatError("expected an object")
            record = reader(value)
            if format != "jsonl" or not rejects.total:  # else it may refer to a row that was refused
                store(record)
        except IntegrityError as e:  # a rule that only the database knows; the transaction is over
            rejects.add(line, f"the database refused it ({e.orig})", index)
            break
        except AmbiscopeError as e:
            rejects.add(line, str(e), index)
    rejects.settle()
    if format == "jsonl":
        advance_sequences(session)
    return ImportReport(str(path), format, dict(importer.stored), dict(importer.known))


class Imports(Part):
    """The part of the Store that reads files."""

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
