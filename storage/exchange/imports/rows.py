"""Rows of an import into the database: each is new, or there and equal, or refused."""

from __future__ import annotations

import uuid
from collections import Counter

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import FormatError, InputError
from core.metrics.score.files import parse_reference
from core.trace import to_json
from core.types import Question, ReferenceQuestion
from storage.exchange.imports.lines import Lines
from storage.exchange.imports.predictions import content_key, prediction_of, question_of
from storage.exchange.kinds import Row
from storage.records.answer_sets import check_annotation
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_text
from storage.results.predictions import insert_prediction, plain_trace, question_row
from storage.schema import tables
from storage.schema.engine import now


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
        self.questions: set[int] = set()  # rows of the questions of a dump

    def count(self, kind: str, new: bool) -> None:
        (self.stored if new else self.known)[kind] += 1

    def line(self, row: Row) -> None:
        self.count(row["kind"], self.lines.store(row))
        if row["kind"] == "question" and (found := self.lines.row_of("question", {"question": row["id"]})) is not None:
            self.questions.add(found)

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
