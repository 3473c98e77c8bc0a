"""A task's rows and its record, inside a transaction: what queue, drafts and submissions share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotFoundError
from storage.people.actors import Actor, actor
from storage.records.annotation import Task
from storage.records.checks import check_choice
from storage.records.projects import Role, WorkStage
from storage.records.rows import record_of
from storage.schema import engine, tables, workbench

NEEDED: dict[str, Role] = {"generation": "annotator", "validation": "validator", "judging": "annotator"}


@dataclass(frozen=True, slots=True)
class Place:
    """Whose work on what, found and allowed.  `task` is None before it is opened for the first time."""

    who: Actor
    project: workbench.Project
    item: workbench.ProjectItem
    queue: workbench.ItemStage
    task: workbench.Task | None
    draft: workbench.Draft | None

    def need_task(self) -> workbench.Task:
        """Raises InputError where the item was never opened."""
        if self.task is None:
            raise InputError("open the item first (next_item or claim_item)")
        return self.task


def find_place(session: Session, item: str, annotator: str, stage: WorkStage) -> Place:
    """Raises InputError for a stage that the project has not, NotFoundError, NotAllowedError."""
    check_choice(stage, WorkStage, "the stage")
    who = actor(session, annotator, NEEDED[stage])
    entry, task, draft = workbench.ItemStage, workbench.Task, workbench.Draft
    found = session.execute(
        select(workbench.ProjectItem, workbench.Project, entry, task, draft)
        .join(workbench.Project, workbench.Project.id == workbench.ProjectItem.project_id)
        .outerjoin(entry, and_(entry.item_id == workbench.ProjectItem.id, entry.stage == stage))
        .outerjoin(task, and_(task.item_id == workbench.ProjectItem.id, task.stage == stage, task.annotator_id == who.id))
        .outerjoin(draft, and_(draft.item_id == task.item_id, draft.stage == stage, draft.annotator_id == who.id))
        .where(workbench.ProjectItem.public_id == item)
    ).first()
    if found is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    row, project, queue, mine, written = found
    if queue is None:
        raise InputError(f"this item has no stage {stage}; its project has {', '.join(project.stages)}")
    return Place(who, project, row, queue, mine, written)


def task_row(session: Session, item: int, stage: str, annotator: int) -> workbench.Task | None:
    return session.scalar(select(workbench.Task).filter_by(item_id=item, stage=stage, annotator_id=annotator))


def new_task(session: Session, queue: workbench.ItemStage, annotator: int, state: str, **values: Any) -> workbench.Task:
    moment = engine.now()
    row = workbench.Task(
        project_id=queue.project_id,
        item_id=queue.item_id,
        stage=queue.stage,
        slots=queue.slots,
        annotator_id=annotator,
        state=state,
        reason="",
        seed=secrets.randbelow(2**31),
        version=0,
        seconds=0.0,
        created=moment,
        updated=moment,
        **{"slot": None, "expires": None, **values},
    )
    session.add(row)
    session.flush()
    return row


def lease_end(project: workbench.Project, moment: datetime) -> datetime:
    return moment + timedelta(minutes=project.lease_minutes)


def tasks_query() -> Any:
    """Rows for `task_record`."""
    return (
        select(
            workbench.Task,
            workbench.ProjectItem.public_id,
            workbench.Project.public_id,
            tables.Question.public_id,
            tables.Question.text,
            tables.Annotator.name,
        )
        .join(workbench.ProjectItem, workbench.ProjectItem.id == workbench.Task.item_id)
        .join(workbench.Project, workbench.Project.id == workbench.Task.project_id)
        .join(tables.Question, tables.Question.id == workbench.ProjectItem.question_id)
        .join(tables.Annotator, tables.Annotator.id == workbench.Task.annotator_id)
    )


def task_record(row: workbench.Task, item: str, project: str, question_id: str, question: str, annotator: str) -> Task:
    of = {"item": item, "project": project, "question_id": question_id, "question": question, "annotator": annotator}
    return record_of(Task, row, gold=row.slots == 0, **of)


def load_task(session: Session, row: workbench.Task) -> Task:
    session.flush()
    found = session.execute(tasks_query().where(workbench.Task.id == row.id)).one()
    return task_record(*found)
