"""The queue, which decides the item that a person gets next.  Each call is one write transaction; the database itself refuses
surplus slots."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

from sqlalchemy import and_, case, select, update
from sqlalchemy.orm import Session

from core.errors import InputError
from storage.access.actors import Actor, actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.assignments import assigned_to, open_to
from storage.annotation.completion import fill_free_slots, lease
from storage.annotation.linked_predictions import linked_count
from storage.annotation.places import STAGE_ROLES, find_place, project_row
from storage.annotation.queue_order import queue_order
from storage.annotation.slots import stage_row
from storage.annotation.tasks import lease_end, load_task, same_work, task_record, task_row, with_names
from storage.records.annotation import Task
from storage.records.checks import MAX_NOTE_CHARS, check_choice, check_page, check_text
from storage.records.enumerations import TaskState, WorkStage
from storage.schema import engine, tables, workbench

CANDIDATE_ITEMS = 20  # looked at together


class Queue(engine.Part):
    """The part of the Store about leases and how they end."""

    @allowed_to("annotate")
    def next_item(self, project: str, annotator: str, stage: WorkStage) -> Task | None:
        """Leases the next item to this person and returns their task; None when no item remains for them.

        In this order: their own open item (returned ones first), own drafts whose lease ran out where a slot is free, now and then a gold
        item as if it were another (at the project's `gold_rate`), what is assigned to them, then the queue: what they never had before
        what they gave back, and for validators other people's items before those that they annotated.  Raises InputError for a closed
        project or a stage that it does not have, NotFoundError, NotAllowedError.
        """
        check_choice(stage, WorkStage, "the stage")
        with self.writing() as session:
            person = actor(session, annotator, STAGE_ROLES[stage])
            row = project_row(session, project)
            if stage not in row.stages:
                raise InputError(f"this project has no stage {stage}; it has {', '.join(row.stages)}")
            if row.state == "closed":
                raise InputError("this project is closed: a manager can open it again")
            _bring_back(session, row, stage)
            search = (session, row, person, stage)
            task = self._unfinished(*search) or self._gold(*search) or self._from_queue(*search)
            return load_task(session, task) if task else None

    def _unfinished(self, session: Session, project: workbench.Project, person: Actor, stage: str) -> workbench.Task | None:
        task, draft = workbench.Task, workbench.Draft
        mine = select(task).where(task.project_id == project.id, task.stage == stage, task.annotator_id == person.id)
        first = case((task.state == "returned", 0), else_=1)
        current = session.scalar(
            mine.where(task.state.in_(("returned", "leased"))).order_by(first, task.updated, task.id).limit(1)
        )
        if current is not None:
            if current.state == "leased":
                current.expires = lease_end(project, engine.now())
            return current
        has_draft = select(draft.id).where(same_work(draft, task), draft.open == True).exists()  # noqa: E712
        lapsed = mine.where(task.state == "expired", has_draft).order_by(task.updated).limit(CANDIDATE_ITEMS)
        for row in session.scalars(lapsed).all():
            queue = stage_row(session, row.item_id, stage)
            if queue is not None and lease(session, project, queue, person, row):
                return row
        return None

    @staticmethod
    def _gold(session: Session, project: workbench.Project, person: Actor, stage: str) -> workbench.Task | None:
        """A gold item that this person never had, after a share of their tasks.  The seed of the last task, which nobody is
        shown, decides when and which one: asking twice gives the same answer, and nobody can predict it."""
        task, queue = workbench.Task, workbench.ItemStage
        mine = select(task.seed).where(task.annotator_id == person.id, task.project_id == project.id, task.stage == stage)
        last = session.scalar(mine.order_by(task.id.desc()).limit(1)) if project.gold_rate and stage != "validation" else None
        draw = int.from_bytes(hashlib.sha256(f"{last}\0gold".encode()).digest()[:8])
        if last is None or draw >= project.gold_rate * 2**64:
            return None
        had = select(task.id).where(task.item_id == queue.item_id, task.stage == stage, task.annotator_id == person.id).exists()
        query = select(queue).where(queue.project_id == project.id, queue.stage == stage, queue.gold == True, ~had)  # noqa: E712
        if stage == "judging":
            query = query.where(linked_count(queue.item_id) >= len(project.systems))
        entries = session.scalars(query.order_by(queue.id)).all()
        if not entries:
            return None
        entry = entries[last % len(entries)]
        return lease(session, project, entry, person, None)

    def _from_queue(self, session: Session, project: workbench.Project, person: Actor, stage: str) -> workbench.Task | None:
        has_assignments = session.scalar(
            select(workbench.Assignment.id).filter_by(annotator_id=person.id, stage=stage).limit(1)
        )
        passes = product(
            (True, False) if has_assignments else (False,), (False, True), (False, True) if stage == "validation" else (True,)
        )
        tasks = (self._candidate(session, project, person, stage, *flags) for flags in passes)
        return next((task for task in tasks if task is not None), None)

    def _candidate(
        self,
        session: Session,
        project: workbench.Project,
        person: Actor,
        stage: str,
        assigned: bool,
        again: bool,
        include_own: bool,
    ) -> workbench.Task | None:
        """The first item with a free slot that isn't reserved for others.  `assigned`: only those assigned to this person.
        `again`: only those that they gave back or lost (including mixed-in gold items).  `include_own`: also those that they
        annotated."""
        queue, task = workbench.ItemStage, workbench.Task
        mine = select(task.id).where(task.item_id == queue.item_id, task.stage == queue.stage, task.annotator_id == person.id)
        query = (
            select(queue)
            .join(workbench.ProjectItem, workbench.ProjectItem.id == queue.item_id)
            .where(
                queue.project_id == project.id,
                queue.stage == stage,
                queue.gold.in_((False, True) if again else (False,)),
                queue.state == "open",
                open_to(person.id, stage),
            )
            .order_by(*queue_order(project))
            .limit(CANDIDATE_ITEMS)
        )
        query = query.where(mine.where(task.state.in_(("released", "expired"))).exists() if again else ~mine.exists())
        if assigned:
            query = query.where(assigned_to(person.id, stage))
        if not include_own:
            my_work = and_(task.item_id == queue.item_id, task.annotator_id == person.id)
            annotated = select(task.id).where(my_work, task.stage == "generation", task.slot.is_not(None))
            query = query.where(~annotated.exists())
        if stage == "judging":
            query = query.where(linked_count(queue.item_id) >= len(project.systems))
        refused_ids: list[int] = []
        while True:
            entries = session.scalars(query.where(queue.id.not_in(refused_ids)) if refused_ids else query).all()
            if not entries:
                return None
            for entry in entries:
                row = task_row(session, entry.item_id, stage, person.id) if again else None
                if leased := lease(session, project, entry, person, row):
                    return leased
                refused_ids.append(entry.id)  # surplus work took the slot

    @allowed_to("annotate")
    def claim_item(self, item: str, annotator: str, stage: WorkStage) -> Task | None:
        """Leases this particular item; None when all its slots are taken, or if it still waits for the stage before.

        Somebody who holds, submitted or got it back gets their task as it is (an open lease renewed).  Raises as `next_item`.
        """
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            row = place.task
            if row is not None and row.state in ("submitted", "returned", "leased"):
                if row.state == "leased":
                    row.expires = lease_end(place.project, engine.now())
                return load_task(session, row)
            if place.project.state == "closed":
                raise InputError("this project is closed: a manager can open it again")
            if stage == "judging" and not session.scalar(select(linked_count(place.item.id) >= len(place.project.systems))):
                raise InputError("this item has no prediction to judge yet: a manager answers it first")
            _bring_back(session, place.project, stage)
            task = lease(session, place.project, place.queue, place.person, row)
            return load_task(session, task) if task else None

    @allowed_to("annotate")
    def release_item(self, item: str, annotator: str, stage: WorkStage) -> Task:
        """Puts an item back into the queue. The draft stays with its author. Raises InputError for submitted or skipped
        work."""
        return self._give_up(item, annotator, stage, "released", "")

    @allowed_to("annotate")
    def skip_item(self, item: str, annotator: str, stage: WorkStage, reason: str) -> Task:
        """Frees the slot for another person.  This one isn't offered the item again.  Raises InputError without a reason, or
        for submitted work."""
        check_text(reason, "the reason", limit=MAX_NOTE_CHARS, empty=False)
        return self._give_up(item, annotator, stage, "skipped", reason)

    def _give_up(self, item: str, annotator: str, stage: WorkStage, state: TaskState, reason: str) -> Task:
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            row = place.need_task()
            if (row.state, row.reason) != (state, reason):
                if row.state in ("submitted", "skipped"):
                    raise InputError(f"this item is {row.state}: undo that first")
                row.state, row.slot, row.expires, row.reason, row.updated = state, None, None, reason, engine.now()
                details = {"stage": stage} | ({"reason": reason} if reason else {})
                note(session, place.person.id, f"item {state}", project=row.project_id, item=row.item_id, details=details)
                fill_free_slots(session, place.project, place.queue)
            return load_task(session, row)

    @allowed_to("annotate")
    def last_finished(self, project: str, user: str) -> Task | None:
        """The work that this person submitted or skipped last, at any stage.  Raises NotFoundError, NotAllowedError."""
        with self.reading() as session:
            person, task = actor(session, user), workbench.Task
            query = with_names(task).where(task.project_id == project_row(session, project).id, task.annotator_id == person.id)
            query = query.where(task.state.in_(("submitted", "skipped"))).order_by(task.updated.desc(), task.id.desc())
            row = session.execute(query.limit(1)).first()
            return task_record(row) if row is not None else None

    @allowed_to("annotate")
    def tasks(
        self,
        project: str,
        user: str,
        *,
        annotator: str | None = None,
        stage: WorkStage | None = None,
        state: TaskState | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> list[Task]:
        """A person's tasks, latest change first.  Only validators and managers see other people's.

        Raises NotAllowedError, NotFoundError, InputError for a limit outside 1..500.
        """
        check_page(limit, offset)
        with self.reading() as session:
            actor(session, user, "annotator" if annotator == user else "validator")
            task = workbench.Task
            query = with_names(task).where(task.project_id == project_row(session, project).id)
            filters: dict[Any, str | None] = {tables.Annotator.name: annotator, task.stage: stage, task.state: state}
            query = query.where(*(column == value for column, value in filters.items() if value is not None))
            rows = session.execute(query.order_by(task.updated.desc(), task.id.desc()).limit(limit).offset(offset))
            return [task_record(row) for row in rows]


def _bring_back(session: Session, project: workbench.Project, stage: str) -> None:
    """Shortens leases after the clock was set back, so that none lasts longer than a new one. (It doesn't end at once, because
    somebody may be working on the item.)"""
    task, end = workbench.Task, lease_end(project, engine.now())
    session.execute(
        update(task)
        .where(task.project_id == project.id, task.stage == stage, task.state == "leased", task.expires > end)
        .values(expires=end)
        .execution_options(synchronize_session=False)
    )
