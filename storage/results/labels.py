"""Annotators and their verdicts on answers: one judgment an annotator and answer, changeable, every earlier value kept."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from core.annotating.labels import Label
from core.errors import InputError, NotFoundError
from storage.people.visitors import only_oneself
from storage.records.checks import check_choice, check_text
from storage.records.results import Annotator, Judgment, JudgmentConflictError, JudgmentRevision, State
from storage.records.rows import record_of
from storage.schema import tables
from storage.schema.engine import Database, now

MAX_NAME_CHARS = 200
MAX_NOTE_CHARS = 20_000


def annotator_row(session: Session, name: str) -> tables.Annotator:
    """The row of this name, made if need be.  Raises InputError for a blank or unprintable name."""
    check_annotator(name)
    row = session.scalar(select(tables.Annotator).filter_by(name=name))
    if row is None:
        row = tables.Annotator(name=name, created=now())
        session.add(row)
        session.flush()
    return row


def check_annotator(name: str) -> None:
    check_text(name, "the annotator's name", limit=MAX_NAME_CHARS, empty=False)
    if not name.isprintable() or name != name.strip():
        raise InputError(f"the annotator's name {name!r} has control characters, or blanks at its ends: take them out")


def check_judgment(verdict: object, note: str, state: object) -> None:
    check_choice(state, State, "the state")
    if verdict is not None or state == "submitted":
        check_choice(verdict, Label, "the verdict")
    check_text(note, "the note", limit=MAX_NOTE_CHARS)


def answer_id(session: Session, prediction_id: str, position: int) -> int:
    """Raises NotFoundError for an unknown prediction or a position that it does not have."""
    prediction = session.scalar(select(tables.Prediction.id).filter_by(public_id=prediction_id))
    if prediction is None:
        raise NotFoundError(f"there is no prediction '{prediction_id[:80]}'")
    found = session.scalar(select(tables.PredictedAnswer.id).filter_by(prediction_id=prediction, position=position))
    if found is None:
        count = session.scalar(select(func.count()).select_from(tables.PredictedAnswer).filter_by(prediction_id=prediction))
        raise NotFoundError(
            f"prediction {prediction_id} has {count} answers, counted from 0; there is none at position {position}"
        )
    return found


def _record(row: tables.Judgment, prediction_id: str, position: int, annotator: str) -> Judgment:
    return record_of(Judgment, row, prediction_id=prediction_id, position=position, annotator=annotator)


def _keep(session: Session, row: tables.Judgment, *, cleared: bool) -> None:
    """Moves a judgment's present value into its history."""
    session.add(
        tables.JudgmentRevision(
            predicted_answer_id=row.predicted_answer_id,
            annotator_id=row.annotator_id,
            verdict=row.verdict,
            note=row.note,
            state=row.state,
            version=row.version,
            saved=row.updated,
            replaced=now(),
            cleared=cleared,
        )
    )


def _of(table: Any, prediction_id: str) -> Select[Any]:
    """Rows of `table`, with position and annotator name, of one prediction."""
    return (
        select(table, tables.PredictedAnswer.position, tables.Annotator.name)
        .join(tables.PredictedAnswer, tables.PredictedAnswer.id == table.predicted_answer_id)
        .join(tables.Prediction, tables.Prediction.id == tables.PredictedAnswer.prediction_id)
        .join(tables.Annotator, tables.Annotator.id == table.annotator_id)
        .where(tables.Prediction.public_id == prediction_id)
    )


def put_judgment(
    session: Session,
    answer: int,
    prediction_id: str,
    position: int,
    who: tables.Annotator,
    verdict: Label | None,
    note: str,
    state: State,
    expected_version: int | None = None,
) -> Judgment:
    """`Judgments.judge` inside a write transaction, of what was checked already; `answer` is the predicted answer's row."""
    row = session.scalar(select(tables.Judgment).filter_by(predicted_answer_id=answer, annotator_id=who.id))
    if row is not None and (row.verdict, row.note, row.state) == (verdict, note, state):
        return _record(row, prediction_id, position, who.name)
    moment = now()
    if expected_version is not None and expected_version != (row.version if row else 0):
        mine = Judgment(prediction_id, position, who.name, verdict, note, state, expected_version, moment, moment)
        theirs = _record(row, prediction_id, position, who.name) if row else None
        raise JudgmentConflictError(mine, theirs, expected_version)
    if row is None:
        # the count goes on after a cleared one, so that no old version number is met twice
        last = session.scalar(
            select(func.max(tables.JudgmentRevision.version)).filter_by(predicted_answer_id=answer, annotator_id=who.id)
        )
        row = tables.Judgment(
            predicted_answer_id=answer, annotator_id=who.id, version=(last or 0) + 1, created=moment, updated=moment
        )
        session.add(row)
    else:
        _keep(session, row, cleared=False)
        row.version += 1
        row.updated = moment
    row.verdict, row.note, row.state = verdict, note, state
    session.flush()
    return _record(row, prediction_id, position, who.name)


class Judgments(Database):
    """The part of the Store about annotators and judgments."""

    def annotator(self, name: str) -> Annotator:
        """Gets or creates.  Raises InputError for a name that is blank or unprintable."""
        check_annotator(name)
        with self.reading() as session:  # a page asks at each rerun: no writer lock for that
            row = session.scalar(select(tables.Annotator).filter_by(name=name))
        if row is None:
            with self.writing() as session:
                row = annotator_row(session, name)
        return record_of(Annotator, row)

    def annotators(self) -> list[Annotator]:
        """In the order in which they came."""
        with self.reading() as session:
            rows = session.scalars(select(tables.Annotator).order_by(tables.Annotator.id))
            return [record_of(Annotator, row) for row in rows]

    def judge(
        self,
        prediction_id: str,
        position: int,
        annotator: str,
        verdict: Label | None,
        note: str = "",
        state: State = "submitted",
        expected_version: int | None = None,
    ) -> Judgment:
        """Saves a verdict and returns it as stored.  A save with equal content changes nothing, whatever the version.

        `expected_version`: the version that was shown (0: none yet); None overwrites whatever is there.  The earlier
        value goes into the history.  Raises JudgmentConflictError (a ConflictError with `mine` and `theirs`) when the
        stored version is another, NotFoundError for an unknown answer, InputError for a wrong verdict, state, note or
        name.
        """
        check_judgment(verdict, note, state)
        with self.writing() as session:
            only_oneself(session, annotator)
            answer = answer_id(session, prediction_id, position)
            who = annotator_row(session, annotator)
            return put_judgment(session, answer, prediction_id, position, who, verdict, note, state, expected_version)

    def clear_judgment(self, prediction_id: str, position: int, annotator: str, expected_version: int | None = None) -> bool:
        """Takes a verdict back; its history stays.

        False if there was none.  Raises JudgmentConflictError and NotFoundError as `judge`.
        """
        with self.writing() as session:
            only_oneself(session, annotator)
            answer = answer_id(session, prediction_id, position)
            row = session.scalar(
                select(tables.Judgment)
                .join(tables.Annotator, tables.Annotator.id == tables.Judgment.annotator_id)
                .where(tables.Judgment.predicted_answer_id == answer, tables.Annotator.name == annotator)
            )
            if row is None:
                return False
            if expected_version is not None and expected_version != row.version:
                moment = now()
                mine = Judgment(prediction_id, position, annotator, None, "", "draft", expected_version, moment, moment)
                raise JudgmentConflictError(mine, _record(row, prediction_id, position, annotator), expected_version)
            _keep(session, row, cleared=True)
            session.delete(row)
            return True

    def judgments(self, prediction_id: str, annotator: str | None = None) -> list[Judgment]:
        """Of one prediction, by position, then annotator; of everybody, or of one annotator."""
        with self.reading() as session:
            query = _of(tables.Judgment, prediction_id).order_by(tables.PredictedAnswer.position, tables.Annotator.id)
            if annotator is not None:
                query = query.where(tables.Annotator.name == annotator)
            return [_record(row, prediction_id, position, name) for row, position, name in session.execute(query)]

    def judgment_history(self, prediction_id: str, position: int, annotator: str) -> list[JudgmentRevision]:
        """Earlier values, the oldest first; the present one is not among them."""
        with self.reading() as session:
            query = _of(tables.JudgmentRevision, prediction_id).where(
                tables.PredictedAnswer.position == position, tables.Annotator.name == annotator
            )
            return [
                record_of(JudgmentRevision, row)
                for row, _, _ in session.execute(query.order_by(tables.JudgmentRevision.version))
            ]
