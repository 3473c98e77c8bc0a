"""A task's rows and its record, inside a transaction: what queue, drafts and submissions share."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotFoundError
from storage import db, models
from storage import models_annotation as tables
from storage.judgments import check_choice
from storage.people import Actor, actor
from storage.records_annotation import Role, Task, TaskState, WorkStage

NEEDED: dict[str, Role] = {"generation": "annotator", "validation": "validator", "judging": "annotator"}


@dataclass(frozen=True, slots=True)
class Place:
    """Whose work on what, found and allowed.  `task` is None before it is opened for the first time."""

    who: Actor
    project: tables.Project
    item: tables.ProjectItem
    queue: tables.ItemStage
    task: tables.Task | None

    def need_task(self) -> tables.Task:
        """Raises InputError where the item was never opened."""
        if self.task is None:
            raise InputError("open the item first (next_item or claim_item)")
        return self.task


def find_place(session: Session, item: str, annotator: str, stage: WorkStage) -> Place:
    """Raises InputError for a stage that the project has not, NotFoundError, NotAllowedError."""
    check_choice(stage, WorkStage, "the stage")
    who = actor(session, annotator, NEEDED[stage])
    entry, task = tables.ItemStage, tables.Task
    found = session.execute(
        select(tables.ProjectItem, tables.Project, entry, task)
        .join(tables.Project, tables.Project.id == tables.ProjectItem.project_id)
        .outerjoin(entry, and_(entry.item_id == tables.ProjectItem.id, entry.stage == stage))
        .outerjoin(task, and_(task.item_id == tables.ProjectItem.id, task.stage == stage, task.annotator_id == who.id))
        .where(tables.ProjectItem.public_id == item)
    ).first()
    if found is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    row, project, queue, mine = found
    if queue is None:
        raise InputError(f"this item has no stage {stage}; its project has {', '.join(project.stages)}")
    return Place(who, project, row, queue, mine)


def task_row(session: Session, item: int, stage: str, annotator: int) -> tables.Task | None:
    return session.scalar(select(tables.Task).filter_by(item_id=item, stage=stage, annotator_id=annotator))


def stands() -> ColumnElement[bool]:
    """Joins tasks with submissions: the one that the task stands at."""
    task, sent = tables.Task, tables.Submission
    return and_(
        sent.item_id == task.item_id,
        sent.stage == task.stage,
        sent.annotator_id == task.annotator_id,
        sent.version == task.version,
    )


def new_task(session: Session, queue: tables.ItemStage, annotator: int, state: str, **values: Any) -> tables.Task:
    moment = db.now()
    row = tables.Task(
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


def lease_end(project: tables.Project, moment: datetime) -> datetime:
    return moment + timedelta(minutes=project.lease_minutes)


def draft_row(session: Session, task: tables.Task) -> tables.Draft | None:
    return session.scalar(
        select(tables.Draft).filter_by(item_id=task.item_id, stage=task.stage, annotator_id=task.annotator_id)
    )


def tasks_query() -> Any:
    """Rows for `task_record`."""
    return (
        select(
            tables.Task,
            tables.ProjectItem.public_id,
            tables.Project.public_id,
            models.Question.public_id,
            models.Question.text,
            models.Annotator.name,
        )
        .join(tables.ProjectItem, tables.ProjectItem.id == tables.Task.item_id)
        .join(tables.Project, tables.Project.id == tables.Task.project_id)
        .join(models.Question, models.Question.id == tables.ProjectItem.question_id)
        .join(models.Annotator, models.Annotator.id == tables.Task.annotator_id)
    )


def task_record(row: tables.Task, item: str, project: str, question_id: str, question: str, annotator: str) -> Task:
    return Task(
        item=item,
        project=project,
        stage=cast(WorkStage, row.stage),
        annotator=annotator,
        question_id=question_id,
        question=question,
        state=cast(TaskState, row.state),
        slot=row.slot,
        expires=row.expires,
        gold=row.slots == 0,
        reason=row.reason,
        version=row.version,
        seconds=row.seconds,
        updated=row.updated,
    )


def load_task(session: Session, row: tables.Task) -> Task:
    session.flush()
    found = session.execute(tasks_query().where(tables.Task.id == row.id)).one()
    return task_record(*found)
