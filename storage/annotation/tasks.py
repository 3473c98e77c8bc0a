"""Shared by queue, drafts and reviews: a task's rows and its record, the end of its lease, and the order in which its person
sees things."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.orm import Session

from storage.records.annotation import Task
from storage.records.rows import record_of
from storage.schema import engine, tables, workbench


def same_work(a: Any, b: Any) -> ColumnElement[bool]:
    """Whether two rows (tables of people's work, or a table and a row) belong to one person's work on one item at one stage."""
    return and_(a.item_id == b.item_id, a.stage == b.stage, a.annotator_id == b.annotator_id)


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
        **values,
    )
    session.add(row)
    session.flush()
    return row


def lease_end(project: workbench.Project, moment: datetime) -> datetime:
    return moment + timedelta(minutes=project.lease_minutes)


def with_names(model: type[workbench.Task | workbench.Submission]) -> Any:
    """Rows of people's work on items, with what `names_of` needs."""
    item = workbench.ProjectItem
    return (
        select(
            model,
            item.public_id.label("item"),
            workbench.Project.public_id.label("project"),
            tables.Question.public_id.label("question_id"),
            tables.Question.text.label("question"),
            tables.Annotator.name.label("annotator"),
        )
        .join(item, item.id == model.item_id)
        .join(workbench.Project, workbench.Project.id == item.project_id)
        .join(tables.Question, tables.Question.id == item.question_id)
        .join(tables.Annotator, tables.Annotator.id == model.annotator_id)
    )


def names_of(row: Any) -> dict[str, str]:
    """The item, project, question and annotator of a row of `with_names`, under the field names of `Task` and `Submission`."""
    return {name: getattr(row, name) for name in ("item", "project", "question_id", "question", "annotator")}


def task_record(row: Any) -> Task:
    """The record of a row of `with_names(workbench.Task)`."""
    return record_of(Task, row.Task, **names_of(row))


def load_task(session: Session, task: workbench.Task) -> Task:
    return task_record(session.execute(with_names(workbench.Task).where(workbench.Task.id == task.id)).one())


def side_order(seed: int, sides: int) -> list[int]:
    """The sides (0 and 1) in the order in which they are shown as a and b.

    >>> sorted(side_order(7, 2))
    [0, 1]
    """
    return order(seed, "side", sides)


def order(seed: int, name: str, count: int) -> list[int]:
    """A permutation of 0..count-1 made with digests instead of `random`, whose shuffle may differ between Python versions."""
    return sorted(range(count), key=lambda i: hashlib.sha256(f"{seed}\0{name}\0{i}".encode()).digest())
