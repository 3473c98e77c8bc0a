"""One rule decides who may see other people's work on a question: comments, labels, submissions, and runs that are judged blind.

Annotators and judges work without knowing other people's answers.

- An annotator may ask to see other people's work on an item (`Blindness.show_item`) once they have no work left on it.  From
  then on their own work on the item is final: they can't undo it or submit again, and get no further work on the item unless
  a validator returns it.  On a gold item, which everybody gets, they never see it.
- Validators and managers see everything, except while they have the item open to write or judge it.
- The local operator (python -m storage, a plain `Store`) sees everything.

People always see their own words and the comments of validators and managers.  Nothing is hidden for a question that is in
no project.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, select
from sqlalchemy.orm import Session, aliased

from core.errors import InputError, NotAllowedError, NotFoundError
from storage.access.actors import VISITOR_INFO, Actor, actor, rights_of
from storage.access.log import note
from storage.access.permissions import allowed_to, can
from storage.schema import engine, tables, workbench

STAGES = ("generation", "judging")  # validators have to see what others wrote
_task, _queue, _reading, _item = workbench.Task, workbench.ItemStage, workbench.Reading, workbench.ProjectItem


class BlindError(NotAllowedError):
    """The run is still to be judged blind.  `can_show`: `show_prediction` would show it now."""

    def __init__(self, can_show: bool) -> None:
        self.can_show = can_show
        super().__init__(
            "this run is judged blind in a project, and would name its system: "
            + (
                "once it is shown, your work on the question is final"
                if can_show
                else "finish your own judging of the question first"
            )
        )


def viewer(session: Session) -> Actor | None:
    """The person of a session's transaction, or None for the local operator."""
    name = session.info.get(VISITOR_INFO)
    return None if name is None else rights_of(session, name)


def has_asked(annotator: int, item: Any) -> ColumnElement[bool]:
    """Whether a person (by id) has asked to see other people's work on an item (its id, or a column of ids)."""
    reading = aliased(workbench.Reading)
    mine = (reading.item_id == item, reading.annotator_id == annotator)
    return select(reading.id).where(*mine, reading.others == True).exists()  # noqa: E712


def hidden(person: Actor, item: Any, *, judged_run: bool = False) -> ColumnElement[bool]:
    """Whether other people's work on an item (its id, or a column of ids) is hidden from this person.  `judged_run`: and also
    which systems are judged there."""
    stages = ("judging",) if judged_run else STAGES
    if can(person.role, "validator"):
        task = aliased(workbench.Task)
        is_open = and_(task.state == "leased", task.expires > engine.now()) | (task.state == "returned")
        mine = (task.item_id == item, task.annotator_id == person.id, task.stage.in_(stages))
        return select(task.id).where(*mine, is_open).exists()
    queue, gold = aliased(workbench.ItemStage), aliased(workbench.ItemStage)
    is_blind = select(queue.id).where(queue.item_id == item, queue.stage.in_(stages)).exists()
    if judged_run:
        return and_(is_blind, ~has_asked(person.id, item))
    is_gold = select(gold.id).where(gold.item_id == item, gold.gold == True).exists()  # noqa: E712
    return and_(is_blind, ~has_asked(person.id, item) | is_gold)


def is_hidden(session: Session, person: Actor, item: int, *, judged_run: bool = False) -> bool:
    return bool(session.scalar(select(hidden(person, item, judged_run=judged_run))))


def of_question(question: int) -> Select[int]:
    """The items of a question (by id), in all projects."""
    return select(_item.id).where(_item.question_id == question)


def hides_labels(session: Session, question: int) -> bool:
    """Whether a session's person may not see others' labels of a question's answers."""
    person = viewer(session)
    return person is not None and session.scalar(of_question(question).where(hidden(person, _item.id)).limit(1)) is not None


def hidden_run(person: Actor) -> ColumnElement[bool]:
    """Whether a row of `prediction` must not reveal its system to this person."""
    link = aliased(workbench.ItemPrediction)
    judged = (link.prediction_id == tables.Prediction.id, hidden(person, link.item_id, judged_run=True))
    return select(link.id).where(*judged).exists()


def check_prediction(session: Session, prediction: tables.Prediction) -> None:
    """Raises BlindError for a run that the session's person still has to judge blind."""
    person = viewer(session)
    if person is None:
        return
    query = select(tables.Prediction.id).where(tables.Prediction.id == prediction.id, hidden_run(person))
    if session.scalar(query) is not None:
        items = session.scalars(of_question(prediction.question_id)).all()
        raise BlindError(not can(person.role, "validator") and not unfinished(session, person, items))


def unfinished(session: Session, person: Actor, items: Collection[int]) -> bool:
    """Whether this person has, or may still get, blind work on one of these items.  Until it is done, nothing is shown."""
    mine = (_task.item_id == _queue.item_id, _task.stage == _queue.stage, _task.annotator_id == person.id)
    finished = select(_task.id).where(*mine, _task.state.in_(("submitted", "skipped"))).exists()
    at_work = select(_task.id).where(*mine, _task.state.in_(("leased", "returned"))).exists()
    is_open = (
        select(workbench.Project.id)
        .where(workbench.Project.id == _queue.project_id, workbench.Project.state == "open")
        .exists()
    )
    query = select(_queue.id).where(_queue.item_id.in_(items), _queue.stage.in_(STAGES), ~finished)
    return session.scalar(query.where(at_work | and_(_queue.state != "done", is_open)).limit(1)) is not None


FINAL_REASON = "you have seen other people's work on this question, so your own is final; a validator can send it back to you"


def refuse_after_asking(session: Session, annotator: int, item: int) -> None:
    """Raises InputError if a person (by id) has seen other people's work on an item, which makes their own work on it final."""
    if session.scalar(select(has_asked(annotator, item))):
        raise InputError(FINAL_REASON)


def refuse_label_after_asking(session: Session, question: int) -> None:
    """The same for a label that a session's person gives on Explore, which would count in place of their judging."""
    person = viewer(session)
    if person is not None and session.scalar(of_question(question).where(has_asked(person.id, _item.id)).limit(1)) is not None:
        raise InputError(FINAL_REASON)


def read_up_to(session: Session, person: Actor, item: int, *, comments: int | None = None, others: bool = False) -> None:
    """Records how much of an item's thread a person has seen."""
    row = session.scalar(select(_reading).filter_by(item_id=item, annotator_id=person.id))
    if row is None:
        row = _reading(item_id=item, annotator_id=person.id, comments=0, others=False, updated=engine.now())
        session.add(row)
    row.comments = max(row.comments, comments or 0)
    row.others, row.updated = row.others or others, engine.now()


class Blindness(engine.Part):
    """The part of the Store that shows other people's work on request."""

    @allowed_to("annotate")
    def show_item(self, item: str, user: str) -> None:
        """Shows this person other people's work on an item from now on, and makes their own work on it final.  Raises
        InputError while they still have work on it, NotFoundError, NotAllowedError."""
        with self.writing() as session:
            person = actor(session, user)
            number = session.scalar(select(_item.id).filter_by(public_id=item))
            if number is None:
                raise NotFoundError(f"there is no item '{item[:80]}'")
            self._show(session, person, [number])

    @allowed_to("annotate")
    def show_prediction(self, prediction_id: str, user: str) -> None:
        """Does what `show_item` does for all items of a prediction's question."""
        with self.writing() as session:
            person = actor(session, user)
            question = session.scalar(select(tables.Prediction.question_id).filter_by(public_id=prediction_id))
            if question is None:
                raise NotFoundError(f"there is no prediction '{prediction_id[:80]}'")
            self._show(session, person, session.scalars(of_question(question)).all())

    @staticmethod
    def _show(session: Session, person: Actor, items: Sequence[int]) -> None:
        if unfinished(session, person, items):
            raise InputError("finish your own work on this question first; then you may see other people's")
        for item in items:
            read_up_to(session, person, item, others=True)
            project = session.scalar(select(_item.project_id).filter_by(id=item))
            note(session, person.id, "others' words shown", project=project, item=item)
