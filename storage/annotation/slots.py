"""Who holds a slot of an item, and when an expired lease loses it (how long one lasts: `lease_minutes` of the project),
inside a write transaction.

An expired lease keeps its slot until somebody else wants it; then its task is `expired`, without a slot, and its draft stays.
Work submitted without a slot is surplus: it is kept, and takes a slot when one becomes free.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ScalarSelect, and_, case, func, or_, select, update
from sqlalchemy.orm import Session

from storage.schema import workbench


def stage_row(session: Session, item: int, stage: str) -> workbench.ItemStage | None:
    return session.scalar(select(workbench.ItemStage).filter_by(item_id=item, stage=stage))


def live_count(moment: datetime) -> ScalarSelect[int]:
    """Of a row of item_stage: how many tasks hold a slot, without expired leases."""
    task, queue = workbench.Task, workbench.ItemStage
    lives = or_(task.state != "leased", task.expires > moment)
    holds_slot = (task.item_id == queue.item_id, task.stage == queue.stage, task.slot.is_not(None), lives)
    return select(func.count()).select_from(task).where(*holds_slot).correlate(queue).scalar_subquery()


def holders(session: Session, item: int, stage: str) -> list[workbench.Task]:
    """The tasks that hold a slot, by slot."""
    task = workbench.Task
    query = select(task).where(task.item_id == item, task.stage == stage, task.slot.is_not(None)).order_by(task.slot)
    return list(session.scalars(query))


def free_slot(session: Session, queue: workbench.ItemStage, moment: datetime, annotator: int | None = None) -> int | None:
    """A slot that may be taken, or None.  Expired leases (except that of this `annotator`, an id) lose theirs only if one is needed."""
    tasks = holders(session, queue.item_id, queue.stage)
    slot = unused_slot(queue, tasks)
    if slot is not None:
        return slot
    for row in tasks:
        if row.state == "leased" and row.annotator_id != annotator and row.expires is not None and row.expires <= moment:
            slot = row.slot
            row.state, row.slot, row.expires, row.updated = "expired", None, None, moment
            session.flush()  # before another row takes the slot
            return slot
    return None


def unused_slot(queue: workbench.ItemStage, tasks: Sequence[workbench.Task]) -> int | None:
    """The lowest slot that none of these tasks, the holders, has; None: all are taken."""
    used_slots = {task.slot for task in tasks}
    return next((n for n in range(queue.slots) if n not in used_slots), None)


def promotable(session: Session, queue: workbench.ItemStage) -> workbench.Task | None:
    """The earliest surplus work: submitted when all slots were taken."""
    task = workbench.Task
    query = (
        select(task)
        .where(task.item_id == queue.item_id, task.stage == queue.stage, task.state == "submitted", task.slot.is_(None))
        .order_by(task.updated, task.id)
        .limit(1)
    )
    return session.scalar(query)


def refresh_states(session: Session, project: int, stages: Sequence[str]) -> None:
    """Sets open and done of a whole project from what was submitted; validation waits for generation.  Gold stays open."""
    queue, task = workbench.ItemStage, workbench.Task
    submitted = (
        select(func.count())
        .select_from(task)
        .where(task.item_id == queue.item_id, task.stage == queue.stage, task.state == "submitted", task.slot.is_not(None))
        .scalar_subquery()
    )
    for stage in stages:
        state = case((and_(submitted >= queue.slots), "done"), else_="open")
        if stage == "validation" and "generation" in stages:
            earlier = workbench.ItemStage.__table__.alias()
            ready = (
                select(earlier.c.id)
                .where(earlier.c.item_id == queue.item_id, earlier.c.stage == "generation", earlier.c.state == "done")
                .exists()
            )
            state = case((and_(submitted >= queue.slots), "done"), (ready, "open"), else_="waiting")
        session.execute(
            update(queue)
            .where(queue.project_id == project, queue.stage == stage, queue.gold == False)  # noqa: E712
            .values(state=state)
            .execution_options(synchronize_session=False)
        )
    session.expire_all()
