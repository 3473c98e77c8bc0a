"""Assigns items to people and counts each person's progress.

Of an item's slots, one is reserved for each person that it is assigned to until they submit or skip it; others may take what remains.  With as many
people as slots, nobody else gets it.  Nothing is reserved for somebody who may not work at the stage (any more).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, and_, delete, func, literal, or_, select

from core.errors import InputError, NotFoundError
from storage.access import blindness
from storage.access.actors import actor, rights_of
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.items import tallies
from storage.annotation.places import STAGE_ROLES, project_row
from storage.annotation.slots import live_count, works
from storage.annotation.tasks import same_work
from storage.records.checks import check_choice
from storage.records.enumerations import WorkStage
from storage.records.projects import AUTOMATIC_ANNOTATOR, PersonProgress
from storage.schema import engine, tables, workbench

_assignment, _task = workbench.Assignment, workbench.Task


def _finished() -> ColumnElement[bool]:
    return select(_task.id).where(same_work(_task, _assignment), _task.state.in_(("submitted", "skipped"))).exists()


def assigned_to(annotator: int, stage: str) -> ColumnElement[bool]:
    """Selects rows of item_stage that are assigned to this person."""
    return workbench.ItemStage.item_id.in_(
        select(_assignment.item_id).where(_assignment.annotator_id == annotator, _assignment.stage == stage)
    )


def open_to(annotator: int, stage: str) -> ColumnElement[bool]:
    """Selects rows of item_stage where a slot is free that isn't reserved for somebody else, and where this person hasn't seen
    other people's work."""
    queue, moment = workbench.ItemStage, engine.now()
    is_open = and_(_task.state == "leased", _task.expires > moment)
    at_work = select(_task.id).where(same_work(_task, _assignment), or_(_task.state == "returned", is_open)).exists()
    reserved = (
        select(func.count())
        .select_from(_assignment)
        .where(_assignment.item_id == queue.item_id, _assignment.stage == queue.stage)
        .where(works(_assignment.annotator_id, _assignment.stage), ~_finished(), ~at_work)
        .correlate(queue)
        .scalar_subquery()
    )
    live = live_count(moment)
    is_free = and_(live < queue.slots, or_(assigned_to(annotator, stage), live + reserved < queue.slots))
    return is_free if stage == "validation" else and_(is_free, ~blindness.has_asked(annotator, queue.item_id))


class Assignments(engine.Part):
    """The part of the Store about assignments and the progress of people."""

    @allowed_to("manage projects")
    def assign(self, user: str, project: str, stage: WorkStage, people: Mapping[int, Sequence[str]]) -> None:
        """Sets the people to whom items (by position, from 0) are assigned at a stage; with nobody, the items are open to
        everybody.  All or none.

        Raises InputError for a stage that the project does not have, a gold item, or more people than an item takes; NotFoundError for a position
        without an item; NotAllowedError unless `user` is a manager, and for somebody who may not work at the stage.
        """
        check_choice(stage, WorkStage, "the stage")
        queue, item = workbench.ItemStage, workbench.ProjectItem
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            if stage not in row.stages:
                raise InputError(f"this project has no stage {stage}; it has {', '.join(row.stages)}")
            everybody = {name for names in people.values() for name in names}
            ids = {name: rights_of(session, name, STAGE_ROLES[stage]).id for name in everybody}
            for position, names in people.items():
                entry = session.scalar(
                    select(queue)
                    .join(item, item.id == queue.item_id)
                    .where(item.project_id == row.id, item.position == position, queue.stage == stage)
                )
                if entry is None:
                    raise NotFoundError(f"the project has no item {position + 1} at this stage")
                if entry.gold:
                    raise InputError(f"item {position + 1} is a gold item: those are given to everybody")
                if len(set(names)) > entry.slots:
                    raise InputError(f"item {position + 1} is assigned to {len(set(names))} people, and takes {entry.slots}")
                session.execute(delete(_assignment).where(_assignment.item_id == entry.item_id, _assignment.stage == stage))
                for name in dict.fromkeys(names):
                    session.add(_assignment(item_id=entry.item_id, stage=stage, annotator_id=ids[name], created=engine.now()))
            details = {"stage": stage, "items": len(people), "names": sorted(ids)}
            note(session, manager.id, "items assigned", project=row.id, details=details)

    @allowed_to("manage projects")
    def unassign(self, user: str, project: str, person: str) -> None:
        """Takes back everything that is assigned to a person and unfinished.  Raises NotFoundError, NotAllowedError unless
        `user` is a manager."""
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            annotator = select(tables.Annotator.id).filter_by(name=person).scalar_subquery()
            items = select(workbench.ProjectItem.id).filter_by(project_id=row.id)
            session.execute(
                delete(_assignment).where(_assignment.annotator_id == annotator, _assignment.item_id.in_(items), ~_finished())
            )
            note(session, manager.id, "items assigned", project=row.id, details={"items": 0, "names": [person]})

    @allowed_to("see others' work")
    def progress_by_person(self, project: str, user: str) -> list[PersonProgress]:
        """The progress of everybody who has a task or an assignment, by name, then stage.  Raises NotFoundError,
        NotAllowedError for annotators."""
        with self.reading() as session:
            actor(session, user, "validator")
            row = project_row(session, project)
            keys = (_task.annotator_id, _task.stage)
            tasks = select(*keys, *tallies(engine.now())).where(_task.project_id == row.id).group_by(*keys)
            tally = {(t.annotator_id, t.stage): t for t in session.execute(tasks)}
            item = workbench.ProjectItem
            assigned = (
                select(_assignment.annotator_id, _assignment.stage, func.count(), func.count().filter(~_finished()))
                .join(item, item.id == _assignment.item_id)
                .where(item.project_id == row.id)
                .group_by(_assignment.annotator_id, _assignment.stage)
            )
            assigned_counts = {(person, stage): counts for person, stage, *counts in session.execute(assigned)}
            can_work = (works(tables.Annotator.id, literal(stage)).label(stage) for stage in row.stages)
            query = select(tables.Annotator.id, tables.Annotator.name, *can_work)
            people = {
                person.id: person for person in session.execute(query.where(tables.Annotator.name != AUTOMATIC_ANNOTATOR))
            }
            rows = []
            for key in tally.keys() | assigned_counts.keys():
                number, stage = key
                if (person := people.get(number)) is not None:
                    total, unfinished = assigned_counts.get(key, (0, 0))
                    tallied = ("submitted", "leased", "returned", "skipped", "gold", "seconds")
                    counts = {name: getattr(tally.get(key), name, 0) for name in tallied}
                    rows.append(PersonProgress(person.name, stage, bool(getattr(person, stage)), total, unfinished, **counts))
            return sorted(rows, key=lambda p: (p.person, row.stages.index(p.stage)))
