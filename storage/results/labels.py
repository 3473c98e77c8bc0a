"""Labels of predicted answers on Explore: one an annotator and answer, changeable, every earlier value kept."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.annotating.labels import Label
from core.errors import NotFoundError
from core.text import stored_name
from storage.access import blindness
from storage.access.actors import VISITOR_INFO, annotator_row, only_oneself
from storage.access.permissions import allowed_to
from storage.records.enumerations import State
from storage.records.results import Judgment, JudgmentConflictError, check_judgment
from storage.records.rows import record_of
from storage.results.standing import annotated, chunked, generation_rows, judged, labelled, submitted
from storage.schema import tables
from storage.schema.engine import Part, now


def answer_id(session: Session, prediction_id: str, position: int) -> int:
    """The row of an answer.  Raises NotFoundError for an unknown prediction, or for a position that it doesn't have."""
    prediction = session.scalar(select(tables.Prediction.id).filter_by(public_id=prediction_id))
    if prediction is None:
        raise NotFoundError(f"there is no prediction '{prediction_id[:80]}'")
    answer = session.scalar(select(tables.PredictedAnswer.id).filter_by(prediction_id=prediction, position=position))
    if answer is None:
        count = session.scalar(select(func.count()).select_from(tables.PredictedAnswer).filter_by(prediction_id=prediction))
        raise NotFoundError(
            f"prediction {prediction_id} has {count} answers, counted from 0; there is none at position {position}"
        )
    return answer


def _question_of(session: Session, prediction_id: str) -> int:
    """The row of a prediction's question; 0 for an unknown prediction."""
    return session.scalar(select(tables.Prediction.question_id).filter_by(public_id=prediction_id)) or 0


def _latest_judgments(session: Session, prediction_id: str) -> list[Judgment]:
    """Each person's latest label, here or in a project, by position, then annotator."""
    question = _question_of(session, prediction_id)
    labels = labelled(session, [question], submitted(session, [question]))
    return [
        record_of(Judgment, label, prediction_id=prediction_id, position=label.answer.position, verdict=label.label)
        for label in labels
        if label.answer.prediction == prediction_id
    ]


def _judgment_of(session: Session, prediction_id: str, position: int, annotator: str) -> Judgment | None:
    judgments = _latest_judgments(session, prediction_id)
    return next((j for j in judgments if (j.position, j.annotator) == (position, annotator)), None)


def _row(session: Session, answer: int, annotator_id: int) -> tuple[tables.Judgment | None, int]:
    """The label of Explore, and the next version: the count goes on after a cleared one, so that no number is used twice."""
    key = {"predicted_answer_id": answer, "annotator_id": annotator_id}
    row = session.scalar(select(tables.Judgment).filter_by(**key))
    last = row.version if row else session.scalar(select(func.max(tables.JudgmentRevision.version)).filter_by(**key))
    return row, (last or 0) + 1


def _add_revision(session: Session, answer: int, annotator_id: int, value: Any, version: int, *, cleared: bool) -> None:
    """Adds a person's label until now to the history of an answer."""
    session.add(
        tables.JudgmentRevision(
            predicted_answer_id=answer,
            annotator_id=annotator_id,
            verdict=value.verdict,
            note=value.note,
            state=value.state,
            version=version,
            saved=value.updated,
            replaced=now(),
            cleared=cleared,
        )
    )


class Labels(Part):
    """The labels that people give to predicted answers."""

    @allowed_to("judge answers")
    def judge(
        self,
        prediction_id: str,
        position: int,
        annotator: str,
        label: Label | None,
        note: str = "",
        state: State = "submitted",
        expected_version: int | None = None,
    ) -> Judgment:
        """Saves a label and returns it as stored.  A save with equal content changes nothing, whatever the version.

        `expected_version`: the version that was shown (0: none yet); None overwrites whatever is there.  The earlier
        value goes into the history.  Raises JudgmentConflictError (a ConflictError with `mine` and `theirs`) when the
        stored version is another, NotFoundError for an unknown answer, InputError for a wrong label, state, note or
        name, and after seeing other people's work on a question that one judges blind (`storage.access.blindness`).
        """
        check_judgment(label, note, state)
        annotator = stored_name(annotator)
        with self.writing() as session:
            only_oneself(session, annotator)
            answer = answer_id(session, prediction_id, position)
            theirs = _judgment_of(session, prediction_id, position, annotator)
            if theirs is not None and (theirs.verdict, theirs.note, theirs.state) == (label, note, state):
                return theirs
            moment = now()
            if expected_version is not None and expected_version != (theirs.version if theirs else 0):
                mine = Judgment(prediction_id, position, annotator, label, note, state, expected_version, moment, moment)
                raise JudgmentConflictError(mine, theirs, expected_version)
            blindness.refuse_label_after_asking(session, _question_of(session, prediction_id))
            annotator_id = annotator_row(session, annotator).id
            row, version = _row(session, answer, annotator_id)
            if row is None:
                row = tables.Judgment(predicted_answer_id=answer, annotator_id=annotator_id, created=moment)
                session.add(row)
            else:
                _add_revision(session, answer, annotator_id, row, row.version, cleared=False)
            row.verdict, row.note, row.state, row.version, row.updated = label, note, state, version, moment
            session.flush()
            return cast(Judgment, _judgment_of(session, prediction_id, position, annotator))

    @allowed_to("judge answers")
    def clear_judgment(self, prediction_id: str, position: int, annotator: str, expected_version: int | None = None) -> bool:
        """Takes a label back; its history stays.

        False if there was none.  Raises JudgmentConflictError and NotFoundError as `judge`.
        """
        annotator = stored_name(annotator)
        with self.writing() as session:
            only_oneself(session, annotator)
            answer = answer_id(session, prediction_id, position)
            theirs = _judgment_of(session, prediction_id, position, annotator)
            if theirs is None:
                return False
            if expected_version is not None and expected_version != theirs.version:
                moment = now()
                mine = Judgment(prediction_id, position, annotator, None, "", "draft", expected_version, moment, moment)
                raise JudgmentConflictError(mine, theirs, expected_version)
            blindness.refuse_label_after_asking(session, _question_of(session, prediction_id))
            annotator_id = annotator_row(session, annotator).id
            row, version = _row(session, answer, annotator_id)
            _add_revision(session, answer, annotator_id, row or theirs, row.version if row else version, cleared=True)
            if row is not None:
                session.delete(row)
            return True

    @allowed_to("judge answers")
    def judgments(self, prediction_id: str, annotator: str | None = None) -> list[Judgment]:
        """A prediction's labels, by position, then annotator, from everybody or one annotator: each person's latest label, here
        or in a project's judging stage.  Others' are included only if the session's person may see them
        (`storage.access.blindness`)."""
        with self.reading() as session:
            hidden = blindness.hides_labels(session, _question_of(session, prediction_id))
            judgments = [j for j in _latest_judgments(session, prediction_id) if annotator in (None, j.annotator)]
            return [j for j in judgments if not hidden or j.annotator == session.info[VISITOR_INFO]]

    @allowed_to("retrain")
    def judged_questions(self) -> int:
        """The number of questions with a label of an answer, or with an annotation."""
        with self.reading() as session:
            labels, people = judged(), generation_rows(session)
            questions = select(labels.c.question_id).union(select(people.c.question_id)).subquery()
            return session.scalar(select(func.count()).select_from(questions)) or 0

    @allowed_to("retrain")
    def answered_questions(self, limit: int) -> int:
        """The number of questions for which somebody labelled an answer correct or wrote one, counted up to `limit`."""
        with self.reading() as session:
            labels, people = judged(), generation_rows(session)
            query = select(labels.c.question_id).union(select(people.c.question_id))
            count = 0
            for questions in chunked(session.scalars(query).all(), max(1, 2 * limit)):
                work = submitted(session, questions)
                correct = {
                    e.answer.question_id for e in labelled(session, questions, work) if e.counts and e.label == "correct"
                }
                correct |= {e.question for e in annotated(session, questions, work) if e.annotation.pairs}
                count += len(correct)
                if count >= limit:
                    return limit
            return count
