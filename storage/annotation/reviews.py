"""The material that validators and judges work on, and the outcome that annotators see."""

from __future__ import annotations

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from core.errors import InputError
from core.trace import from_json
from core.types import Annotation, Passage
from storage.access.permissions import allowed_to
from storage.annotation.completion import sources_of
from storage.annotation.places import find_place
from storage.annotation.slots import holders
from storage.annotation.tasks import order, same_work, side_order
from storage.records.annotation import (
    JudgingSheet,
    MineAndFinal,
    ShownAnswer,
    Side,
    ValidationInput,
)
from storage.records.enumerations import SideName
from storage.records.projects import AUTOMATIC_ANNOTATOR
from storage.results.predictions import evidence_of
from storage.schema import engine, tables, workbench


class Reviews(engine.Part):
    """The part of the Store about the validation and judging stages."""

    @allowed_to("see others' work")
    def validation_input(self, item: str, user: str) -> ValidationInput:
        """The annotations to validate.  Raises InputError while annotations are missing, NotFoundError,
        NotAllowedError unless `user` is a validator.
        """
        with self.reading() as session:
            place = find_place(session, item, user, "validation")
            if place.queue.state == "waiting":
                raise InputError("this item waits for its annotations: nothing to validate yet")
            sources = sources_of(session, place.item)
            return ValidationInput(
                item=item,
                question=place.question.text,
                annotations=tuple((name, annotation) for name, _, annotation in sources),
                expected_version=place.task.version if place.task else 0,
                sources=tuple((name, version) for name, version, _ in sources),
            )

    @allowed_to("annotate")
    def mine_and_final(self, item: str, annotator: str) -> MineAndFinal:
        """A person's own annotation of an item beside the validated one.  Raises InputError if they didn't annotate it,
        NotFoundError, NotAllowedError.
        """
        with self.reading() as session:
            place = find_place(session, item, annotator, "generation")
            mine = self._annotation(session, place.task)
            if mine is None:
                raise InputError("you have submitted no annotation of this item: there is nothing of yours to compare")
            validation = next((h for h in holders(session, place.item.id, "validation") if h.state == "submitted"), None)
            final = self._annotation(session, validation)
            automatic = (
                validation is not None
                and session.get_one(tables.Annotator, validation.annotator_id).name == AUTOMATIC_ANNOTATOR
            )
            annotation, note = final or (None, "")
            return MineAndFinal(item, place.question.text, mine[0], annotation, automatic, note)

    @staticmethod
    def _annotation(session: Session, task: workbench.Task | None) -> tuple[Annotation, str] | None:
        """The last submitted annotation of a task and its note."""
        if task is None or not task.version:
            return None
        submission = workbench.Submission
        query = select(submission.body).where(same_work(submission, task), submission.version == task.version)
        body = session.scalars(query).one()
        return from_json(Annotation, body["annotation"]), body.get("note", "")

    @allowed_to("annotate")
    def judging_sheet(self, item: str, annotator: str) -> JudgingSheet:
        """The answer sets to judge, without the names of their systems, shuffled by the seed of the person's task.

        Raises InputError for an item that was never opened or has no predictions, NotFoundError, NotAllowedError.
        """
        with self.reading() as session:
            place = find_place(session, item, annotator, "judging")
            seed = place.need_task().seed
            predictions = session.scalars(
                select(tables.Prediction)
                .join(workbench.ItemPrediction, workbench.ItemPrediction.prediction_id == tables.Prediction.id)
                .where(workbench.ItemPrediction.item_id == place.item.id)
                .order_by(workbench.ItemPrediction.side)
                .options(undefer(tables.Prediction.trace))
            ).all()
            if not predictions:
                raise InputError("no prediction is linked to this item: run the system, then link predictions")
            sides = []
            for name, number in zip("ab", side_order(seed, len(predictions)), strict=False):
                row = predictions[number]
                answers = session.scalars(
                    select(tables.PredictedAnswer)
                    .where(tables.PredictedAnswer.prediction_id == row.id)
                    .order_by(tables.PredictedAnswer.position)
                ).all()
                shuffled = tuple(
                    ShownAnswer(row.public_id, a.position, a.text, a.clarified, evidence_of(a))
                    for a in (answers[i] for i in order(seed, name, len(answers)))
                )
                sides.append(Side(cast(SideName, name), row.public_id, shuffled))
            retrieved = [r["passage"] for row in predictions for r in row.trace["passages"]]
            passages = {(p["id"], p["text"]): Passage(p["id"], p["title"], p["text"]) for p in retrieved}
            return JudgingSheet(item, place.question.text, tuple(sides), tuple(passages[key] for key in sorted(passages)))
