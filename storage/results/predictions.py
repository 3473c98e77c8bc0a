"""Questions and predictions: saved once, read back equal."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import ConflictError, FormatError, InputError, NotFoundError, StorageError
from core.trace import prediction_from_json, to_json
from core.types import Evidence, Prediction, Question
from storage.access import blindness
from storage.access.permissions import allowed_to
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_key, check_page, check_text, plain_problem
from storage.records.results import PredictionSummary, StoredPrediction
from storage.records.rows import record_of
from storage.schema import tables
from storage.schema.engine import Part, now


def question_digest(id: str, text: str) -> str:
    """Names a question in exports where its id is blank or taken: two databases name the same question alike."""
    return hashlib.sha256(f"{id}\0{text}".encode()).hexdigest()[:32]


def same_question(rows: Sequence[Any], id: str) -> Any | None:
    """The stored question with this id, among those with the same text.  One of the two ids may come from an export, which
    wrote the other's digest."""

    def matches(row: Any) -> bool:
        return id in (row.source_id, question_digest(row.source_id, row.text)) or row.source_id == question_digest(id, row.text)

    return next(filter(matches, sorted(rows, key=lambda row: row.source_id != id)), None)


def find_question(session: Session, question: Question) -> tables.Question | None:
    """The row of this text and id."""
    return same_question(session.scalars(select(tables.Question).filter_by(text=question.text)).all(), question.id)


def question_row(session: Session, question: Question) -> tables.Question:
    """The row of this text and id, inserted if need be."""
    check_text(question.text, "the question", limit=MAX_QUESTION_CHARS, empty=False)
    check_text(question.id, "the question's id", limit=MAX_ID_CHARS)
    row = find_question(session, question)
    if row is None:
        is_taken = (
            not question.id.strip() or session.scalar(select(tables.Question.id).filter_by(public_id=question.id)) is not None
        )
        row = tables.Question(
            public_id=question_digest(question.id, question.text) if is_taken else question.id,
            source_id=question.id,
            text=question.text,
            folded=question.text.casefold(),
            created=now(),
        )
        session.add(row)
        session.flush()
    return row


def put_prediction(session: Session, prediction: Prediction, trace: dict[str, Any], key: str | None) -> tables.Prediction:
    """The row of a prediction: the existing one with this key, or else a new one with its answers.  `trace`: made by
    `plain_trace`.

    Raises ConflictError when the key belongs to another question or system.
    """
    existing = session.scalar(select(tables.Prediction).filter_by(key=key)) if key is not None else None
    if existing is not None:
        question = session.get_one(tables.Question, existing.question_id)
        if question.text != prediction.question.text or existing.system != prediction.system.name:
            run = f"question '{question.text[:80]}', {existing.system}"
            raise ConflictError(f"the key '{str(key)[:80]}' names another run ({run})")
        return existing
    info = prediction.system
    row = tables.Prediction(
        question_id=question_row(session, prediction.question).id,
        system=info.name,
        settings=to_json(info.settings),
        corpus=info.corpus,
        corpus_digest=info.corpus_digest,
        checkpoint=info.checkpoint,
        checkpoint_digest=info.checkpoint_digest,
        seconds=prediction.seconds,
        trace=trace,
        public_id=uuid.uuid4().hex,
        key=key,
        created=now(),
    )
    session.add(row)
    session.flush()
    for position, answer in enumerate(prediction.answers):
        # rounding of float32 sums may leave 1.0000001; the trace keeps the exact value
        if not -1e-3 <= answer.probability <= 1 + 1e-3:
            raise InputError(f"answer {position + 1} has probability {answer.probability}; it must be in 0..1")
        clarification = prediction.clarification_of(answer.text)
        rewritten = clarification if clarification and clarification.question else None
        session.add(
            tables.PredictedAnswer(
                prediction_id=row.id,
                position=position,
                text=answer.text,
                probability=min(max(answer.probability, 0.0), 1.0),
                evidence=to_json(answer.evidence),
                clarified=rewritten.question if rewritten else None,
                passed=rewritten.passed if rewritten else None,
            )
        )
    session.flush()
    return row


def plain_trace(prediction: Prediction) -> dict[str, Any]:
    """`to_json(prediction)`.

    Raises InputError naming the part that cannot be stored (NaN, NUL, lone surrogates, foreign objects).
    """
    trace: dict[str, Any] = to_json(prediction)
    if problem := plain_problem(trace):
        raise InputError(f"the prediction cannot be stored: {problem}")
    if prediction.seconds < 0:
        raise InputError(f"the prediction cannot be stored: seconds is {prediction.seconds}")
    return trace


class Predictions(Part):
    """The part of the Store about questions and predictions."""

    @allowed_to("ask questions")
    def save_prediction(self, prediction: Prediction, key: str | None = None) -> str:
        """Stores a prediction with its whole trace and returns its public id.

        `key` names the run: a second save with the same key stores nothing and returns the first one's id, so a page
        may save at each rerun.  Raises InputError for what cannot be stored, ConflictError when the key belongs to
        another question or system, StorageError when the database refuses; then nothing was stored.
        """
        trace = plain_trace(prediction)
        check_key(key)
        with self.writing() as session:
            return put_prediction(session, prediction, trace, key).public_id

    @allowed_to("ask questions")
    def find_prediction(self, prediction_id: str) -> StoredPrediction | None:
        """A prediction; None for an unknown id.  Raises BlindError for a run that the session's person still has to judge
        blind, StorageError for a damaged trace."""
        with self.reading() as session:
            query = (
                select(tables.Prediction, tables.Question.public_id)
                .join(tables.Question, tables.Question.id == tables.Prediction.question_id)
                .where(tables.Prediction.public_id == prediction_id)
                .options(undefer(tables.Prediction.trace))
            )
            try:
                match = session.execute(query).first()
                if match is None:
                    return None
                row, question_id = match
                blindness.check_prediction(session, row)
                prediction = prediction_from_json(row.trace)
                return record_of(StoredPrediction, row, id=row.public_id, prediction=prediction, question_id=question_id)
            except (json.JSONDecodeError, FormatError) as e:
                raise StorageError(f"the trace of prediction {prediction_id} is damaged ({e}): restore a backup") from None

    @allowed_to("ask questions")
    def get_prediction(self, prediction_id: str) -> StoredPrediction:
        """A prediction.  Raises NotFoundError for an unknown id, else as `find_prediction`."""
        prediction = self.find_prediction(prediction_id)
        if prediction is None:
            raise NotFoundError(
                f"there is no prediction '{prediction_id[:80]}': the link is wrong, or it is of another database"
            )
        return prediction

    @allowed_to("ask questions")
    def recent_predictions(self, limit: int = 20, offset: int = 0, text: str = "") -> list[PredictionSummary]:
        """The predictions, newest first, without those that the session's person still has to judge blind.  `text` must occur
        in the question, ignoring case.  Raises InputError for a limit outside 1..500."""
        check_page(limit, offset)
        with self.reading() as session:
            query = (
                select(tables.Prediction, tables.Question.text)
                .join(tables.Question, tables.Question.id == tables.Prediction.question_id)
                .order_by(tables.Prediction.created.desc(), tables.Prediction.id.desc())
            )
            if text:
                query = query.where(tables.Question.folded.contains(text.casefold(), autoescape=True))
            if (person := blindness.viewer(session)) is not None:
                query = query.where(~blindness.hidden_run(person))
            rows = session.execute(query.limit(limit).offset(offset)).all()
            answers: dict[int, list[str]] = {}
            answer_query = (
                select(tables.PredictedAnswer.prediction_id, tables.PredictedAnswer.text)
                .where(tables.PredictedAnswer.prediction_id.in_([row.id for row, _ in rows]))
                .order_by(tables.PredictedAnswer.prediction_id, tables.PredictedAnswer.position)
            )
            for prediction, answer in session.execute(answer_query):
                answers.setdefault(prediction, []).append(answer)
            return [
                PredictionSummary(row.public_id, question, row.system, row.corpus, tuple(answers.get(row.id, ())), row.created)
                for row, question in rows
            ]


def evidence_of(row: tables.PredictedAnswer) -> tuple[Evidence, ...]:
    return tuple(Evidence(e["passage_id"], e["start"], e["end"], e["text"]) for e in row.evidence)
