"""Looks up projects, items and a person's work on an item at the start of a transaction, and checks the person's rights."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotFoundError
from storage.access.actors import Actor, actor
from storage.annotation.tasks import same_work
from storage.records.checks import check_choice
from storage.records.enumerations import Role, WorkStage
from storage.schema import tables, workbench

STAGE_ROLES: dict[str, Role] = {"generation": "annotator", "validation": "validator", "judging": "annotator"}


def project_row(session: Session, project: str) -> workbench.Project:
    row = session.scalar(select(workbench.Project).filter_by(public_id=project))
    if row is None:
        raise NotFoundError(f"there is no project '{project[:80]}'")
    return row


def item_row(session: Session, item: str) -> workbench.ProjectItem:
    row = session.scalar(select(workbench.ProjectItem).filter_by(public_id=item))
    if row is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    return row


def latest_guidelines(session: Session, project: int) -> int:
    """The version of the guidelines in force; 0 if none was written."""
    return session.scalar(select(func.max(workbench.Guideline.version)).filter_by(project_id=project)) or 0


@dataclass(frozen=True, slots=True)
class Place:
    """A person's work on an item at one stage, after the check of their rights.  `task` is None until they open it for the
    first time."""

    person: Actor
    project: workbench.Project
    item: workbench.ProjectItem
    question: tables.Question
    queue: workbench.ItemStage
    task: workbench.Task | None
    draft: workbench.Draft | None

    def need_task(self) -> workbench.Task:
        """The task.  Raises InputError if the item was never opened."""
        if self.task is None:
            raise InputError("open the item first (next_item or claim_item)")
        return self.task


def find_place(session: Session, item: str, annotator: str, stage: WorkStage) -> Place:
    """Looks up and checks the place.  Raises InputError for a stage that the project doesn't have, NotFoundError,
    NotAllowedError."""
    check_choice(stage, WorkStage, "the stage")
    person = actor(session, annotator, STAGE_ROLES[stage])
    entry, task, draft = workbench.ItemStage, workbench.Task, workbench.Draft
    match = session.execute(
        select(workbench.Project, workbench.ProjectItem, tables.Question, entry, task, draft)
        .select_from(workbench.ProjectItem)
        .join(workbench.Project, workbench.Project.id == workbench.ProjectItem.project_id)
        .join(tables.Question, tables.Question.id == workbench.ProjectItem.question_id)
        .outerjoin(entry, and_(entry.item_id == workbench.ProjectItem.id, entry.stage == stage))
        .outerjoin(task, and_(task.item_id == workbench.ProjectItem.id, task.stage == stage, task.annotator_id == person.id))
        .outerjoin(draft, same_work(draft, task))
        .where(workbench.ProjectItem.public_id == item)
    ).first()
    if match is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    place = Place(person, *match)
    if place.queue is None:
        raise InputError(f"this item has no stage {stage}; its project has {', '.join(place.project.stages)}")
    return place
