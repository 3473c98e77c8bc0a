"""Decides who holds a slot of an item, and when an expired lease loses it (the project's `lease_minutes` say how long one
lasts), inside a write transaction.

An expired lease keeps its slot until somebody else wants it; then its task is `expired`, without a slot, and its draft stays.  So does what is
open with somebody, or was returned to somebody, who may not work at the stage (any more).
Work submitted without a slot is surplus: it is kept, and takes a slot when one becomes free.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, and_, case, func, or_, select, true, update
from sqlalchemy.orm import Session

from core.errors import InputError
from core.text import listed
from storage.access.actors import somebody_signs_in
from storage.records.projects import AUTOMATIC_ANNOTATOR, MIXED_SLOTS
from storage.schema import engine, tables, workbench


def stage_row(session: Session, item: int, stage: str) -> workbench.ItemStage | None:
    return session.scalar(select(workbench.ItemStage).filter_by(item_id=item, stage=stage))


def works(annotator: Any, stage: Any) -> ColumnElement[bool]:
    """Whether a person (by id) may work at this stage: `storage.access.actors.rights_of` in SQL."""
    account = workbench.Account
    role = or_(stage != "validation", account.role != "annotator")
    may = select(account.id).where(account.annotator_id == annotator, account.active == True, role).exists()  # noqa: E712
    return or_(~somebody_signs_in(), may)


def _lives(moment: datetime) -> ColumnElement[bool]:
    """Selects tasks with a slot that others can't have."""
    task = workbench.Task
    is_open = or_(task.state == "returned", task.expires > moment)
    return or_(task.state == "submitted", and_(is_open, works(task.annotator_id, task.stage)))


def live_count(moment: datetime) -> ScalarSelect[int]:
    """The number of tasks that permanently hold a slot (`_lives`) for a row of item_stage."""
    task, queue = workbench.Task, workbench.ItemStage
    holds_slot = (task.item_id == queue.item_id, task.stage == queue.stage, task.slot.is_not(None), _lives(moment))
    return select(func.count()).select_from(task).where(*holds_slot).correlate(queue).scalar_subquery()


def holders(session: Session, item: int, stage: str) -> list[workbench.Task]:
    """The tasks that hold a slot, by slot."""
    task = workbench.Task
    query = select(task).where(task.item_id == item, task.stage == stage, task.slot.is_not(None)).order_by(task.slot)
    return list(session.scalars(query))


def free_slot(session: Session, queue: workbench.ItemStage, moment: datetime, annotator: int | None = None) -> int | None:
    """A slot that may be taken, or None.  Expired leases (except that of this `annotator`, an id) lose theirs only if one is
    needed."""
    slot = unused_slot(queue.slots, holders(session, queue.item_id, queue.stage))
    if slot is not None:
        return slot
    task = workbench.Task
    lapsed = select(task).where(
        task.item_id == queue.item_id, task.stage == queue.stage, task.slot.is_not(None), ~_lives(moment)
    )
    row = session.scalar(lapsed.where(task.annotator_id != annotator).order_by(task.slot).limit(1))
    if row is not None:
        slot = row.slot
        row.state, row.slot, row.expires, row.updated = "expired", None, None, moment
        session.flush()  # before another row takes the slot
    return slot


def unused_slot(slots: int, tasks: Sequence[workbench.Task]) -> int | None:
    """The lowest slot number that none of these tasks holds; None if all are taken."""
    used_slots = {task.slot for task in tasks}
    return next((n for n in range(slots) if n not in used_slots), None)


def promotable(session: Session, queue: workbench.ItemStage) -> workbench.Task | None:
    """The earliest surplus work, submitted when all slots were taken."""
    task = workbench.Task
    query = (
        select(task)
        .where(task.item_id == queue.item_id, task.stage == queue.stage, task.state == "submitted", task.slot.is_(None))
        .order_by(task.updated, task.id)
        .limit(1)
    )
    return session.scalar(query)


def vacate(session: Session, project: int, number: int, items: Collection[int] | None = None) -> int:
    """Prepares a project's items (or these, by id) for only `number` slots: work in higher ones moves down, and expired leases
    lose theirs.  Returns the number of submissions that find no slot."""
    task, moment, surplus = workbench.Task, engine.now(), 0
    which = true() if items is None else task.item_id.in_(items)
    conditions = (
        which,
        task.project_id == project,
        task.stage != "validation",
        task.slot.is_not(None),
        task.slots < MIXED_SLOTS,
    )
    higher = select(task).where(*conditions, task.slot >= number)
    if session.scalar(higher.limit(1)) is None:
        return 0
    session.execute(
        update(task)
        .where(*conditions, ~_lives(moment))
        .values(state="expired", slot=None, expires=None, updated=moment)
        .execution_options(synchronize_session=False)
    )
    session.expire_all()
    for row in session.scalars(higher).all():
        slot = unused_slot(number, holders(session, row.item_id, row.stage))
        if slot is None:
            surplus += 1
        else:
            row.slot = slot
    session.flush()
    return surplus


def refresh_states(session: Session, project: int, stages: Sequence[str]) -> None:
    """Sets open and done for a whole project by what was submitted.  Validation waits for generation, and items that a person
    validated stay done.  An automatic validation is taken back if one of its annotations is missing.  Gold items stay open."""
    queue, task = workbench.ItemStage, workbench.Task
    submitted = (
        select(func.count())
        .select_from(task)
        .where(task.item_id == queue.item_id, task.stage == queue.stage, task.state == "submitted", task.slot.is_not(None))
        .correlate(queue)
        .scalar_subquery()
    )
    incomplete = select(queue.item_id).where(queue.project_id == project, queue.stage == "generation", submitted < queue.slots)
    automatic = select(tables.Annotator.id).filter_by(name=AUTOMATIC_ANNOTATOR).scalar_subquery()
    session.execute(
        update(task)
        .where(
            task.item_id.in_(incomplete), task.stage == "validation", task.state == "submitted", task.annotator_id == automatic
        )
        .values(state="released", slot=None, updated=engine.now())
        .execution_options(synchronize_session=False)
    )
    is_valid = (task.stage == "validation", task.state == "submitted", task.slot.is_not(None))
    validated = select(task.item_id).where(task.project_id == project, *is_valid)
    for stage in stages:
        is_done = submitted >= queue.slots
        state = case((or_(is_done, and_(queue.stage == "generation", queue.item_id.in_(validated))), "done"), else_="open")
        if stage == "validation" and "generation" in stages:
            earlier = workbench.ItemStage.__table__.alias()
            ready = (
                select(earlier.c.id)
                .where(earlier.c.item_id == queue.item_id, earlier.c.stage == "generation", earlier.c.state == "done")
                .exists()
            )
            state = case((is_done, "done"), (ready, "open"), else_="waiting")
        session.execute(
            update(queue)
            .where(queue.project_id == project, queue.stage == stage, queue.gold == False)  # noqa: E712
            .values(state=state)
            .execution_options(synchronize_session=False)
        )
    session.expire_all()


def set_slots(session: Session, project: workbench.Project, number: int, items: Collection[int] | None = None) -> None:
    """Sets how many people each item (or these, by id) takes, and the resulting states.  Raises InputError while more work is
    held."""
    queue = workbench.ItemStage
    if surplus := vacate(session, project.id, number, items):
        raise InputError(
            f"{listed(surplus, 'piece')} of work {'is' if surplus == 1 else 'are'} held beyond {number} per item: release or return "
            "what is too much first"
        )
    stages = (queue.project_id == project.id, queue.stage != "validation", queue.gold == False)  # noqa: E712  (one person validates)
    which = true() if items is None else queue.item_id.in_(items)
    session.execute(update(queue).where(*stages, which).values(slots=number).execution_options(synchronize_session=False))
    session.expire_all()
    refresh_states(session, project.id, project.stages)
