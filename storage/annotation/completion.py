"""Assigns slots, and updates an item's states when a submission starts or stops counting: the stage's, the next one's, and automatic validation.

Each function runs inside the write transaction of its caller.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from core.annotating.agreement import agree, merged
from core.errors import InputError
from core.trace import from_json, to_json
from core.types import Annotation
from storage.access.actors import Actor, annotator_row
from storage.access.log import note
from storage.annotation.assignments import open_to
from storage.annotation.places import Place, latest_guidelines
from storage.annotation.queue_order import update_disagreement
from storage.annotation.slots import free_slot, holders, promotable, stage_row, unused_slot
from storage.annotation.tasks import lease_end, new_task, task_row
from storage.records.annotation import ValidationWork
from storage.records.contents import all_from_json
from storage.records.enumerations import ItemState
from storage.records.projects import AUTOMATIC_ANNOTATOR
from storage.results.standing import chunked, counted_submissions
from storage.schema import engine, tables, workbench

ITEMS_PER_TRANSACTION = 200  # items looked at in one transaction: others can save in between


def add_version(
    session: Session,
    task: workbench.Task,
    body: dict[str, Any],
    *,
    guidelines: int | None = None,
    seconds: float = 0.0,
    restores: int | None = None,
    score: float | None = None,
    automatic: bool = False,
) -> workbench.Submission:
    """Adds the next version of a task's work.  `body`: core.trace.to_json of the content.  `guidelines`: the version shown, or
    None for the latest."""
    task.version += 1
    task.seconds += seconds
    task.state, task.expires, task.reason, task.updated = "submitted", None, "", engine.now()
    submission = workbench.Submission(
        project_id=task.project_id,
        item_id=task.item_id,
        stage=task.stage,
        annotator_id=task.annotator_id,
        version=task.version,
        restores=restores,
        body=body,
        seconds=seconds,
        guidelines=latest_guidelines(session, task.project_id) if guidelines is None else guidelines,
        score=score,
        automatic=automatic,
        created=task.updated,
    )
    session.add(submission)
    session.flush()
    return submission


def sources_of(session: Session, item: workbench.ProjectItem) -> list[tuple[str, int, Annotation]]:
    """(annotator, version, annotation) for each annotation to validate, by slot: the counted ones.  Without a generation stage,
    those of the question file as 'file 1', 'file 2', ... with version 0.
    """
    queue = stage_row(session, item.id, "generation")
    if queue is None:
        return [(f"file {n}", 0, a) for n, a in enumerate(all_from_json(Annotation, item.references), 1)]
    submission = workbench.Submission
    rows = session.execute(
        counted_submissions(tables.Annotator.name, submission.version, submission.body)
        .join(tables.Annotator, tables.Annotator.id == submission.annotator_id)
        .where(submission.item_id == item.id, submission.stage == "generation")
        .order_by(workbench.Task.slot)
    )
    return [(name, version, from_json(Annotation, body["annotation"])) for name, version, body in rows]


def began_to_count(session: Session, project: workbench.Project, queue: workbench.ItemStage, task: workbench.Task) -> None:
    """Updates the item after a submission got its slot, or after a new version of one that has a slot."""
    filled = sum(holder.state == "submitted" for holder in holders(session, queue.item_id, queue.stage))
    if filled >= queue.slots:
        queue.state = "done"
    if queue.stage == "generation":
        if filled > 1:  # there is a disagreement
            update_disagreement(session, [task.item_id])
        if queue.state == "done" and "validation" in project.stages:
            _open_validation(session, project, session.get_one(workbench.ProjectItem, task.item_id))


def ceased_to_count(session: Session, project: workbench.Project, queue: workbench.ItemStage, task: workbench.Task) -> None:
    """Updates the item after a submission was returned or reopened.  It keeps its slot for its annotator."""
    queue.state = "open"
    if queue.stage == "generation":
        update_disagreement(session, [task.item_id])
        retract_automatic(session, task.item_id)
        _set_validation(session, task.item_id, "waiting")


def retract_automatic(session: Session, item: int) -> None:
    """Takes back an automatic validation.  Raises InputError if a person validated the item, because that has to be returned
    first."""
    for validation in holders(session, item, "validation"):
        if validation.state == "submitted":
            if session.get_one(tables.Annotator, validation.annotator_id).name != AUTOMATIC_ANNOTATOR:
                raise InputError("this item is validated already: the validation has to be returned first")
            validation.state, validation.slot, validation.updated = "released", None, engine.now()
            _set_validation(session, item, "open")


def _set_validation(session: Session, item: int, state: ItemState) -> None:
    """Sets the validation state of an item whose project has that stage."""
    if (queue := stage_row(session, item, "validation")) is not None:
        queue.state = state


def fill_free_slots(session: Session, project: workbench.Project, queue: workbench.ItemStage) -> bool:
    """Gives free slots to surplus work, the earliest first.  True if any got one."""
    filled = False
    while (surplus := promotable(session, queue)) is not None:
        slot = unused_slot(queue.slots, holders(session, queue.item_id, queue.stage))
        if slot is None:
            break
        surplus.slot = slot
        began_to_count(session, project, queue, surplus)
        filled = True
    return filled


def update_items(database: engine.Database, project: int) -> None:
    """Updates the items after a change in the number of people an item, a portion at a time: surplus work takes free slots, and
    annotations that agree are validated."""
    queue, task = workbench.ItemStage, workbench.Task
    surplus = select(task.id).where(
        task.item_id == queue.item_id, task.stage == queue.stage, task.state == "submitted", task.slot.is_(None)
    )
    with database.reading() as session:
        query = select(queue.id).where(queue.project_id == project, queue.state == "open")
        entries = session.scalars(query.where(or_(queue.stage == "validation", surplus.exists()))).all()
    for part in chunked(entries, ITEMS_PER_TRANSACTION):
        with database.writing() as session:
            row = session.get_one(workbench.Project, project)
            for entry in session.scalars(select(queue).where(queue.id.in_(list(part)), queue.state == "open")).all():
                if entry.stage == "validation" and "generation" in row.stages:
                    _open_validation(session, row, session.get_one(workbench.ProjectItem, entry.item_id))
                elif entry.stage != "validation":
                    fill_free_slots(session, row, entry)


def _open_validation(session: Session, project: workbench.Project, item: workbench.ProjectItem) -> None:
    queue = stage_row(session, item.id, "validation")
    if queue is None or queue.state == "done":
        return
    queue.state = "open"
    sources = sources_of(session, item)
    if holders(session, item.id, "validation") or not agree([annotation for _, _, annotation in sources]):
        return
    annotator = annotator_row(session, AUTOMATIC_ANNOTATOR)
    task = task_row(session, item.id, "validation", annotator.id) or new_task(session, queue, annotator.id, "released")
    task.slot = 0
    content = ValidationWork(
        merged([annotation for _, _, annotation in sources]), sources=tuple((name, version) for name, version, _ in sources)
    )
    add_version(session, task, to_json(content), guidelines=0, automatic=True)
    queue.state = "done"
    note(session, None, "item validated automatically", project=project.id, item=item.id, details={"version": task.version})


def lease(
    session: Session, project: workbench.Project, queue: workbench.ItemStage, person: Actor, row: workbench.Task | None
) -> workbench.Task | None:
    """The person's task (`row`, if they have one) with a free slot; None if there is no slot, earlier surplus work takes it, or
    it is reserved for somebody else."""
    moment = engine.now()
    if not session.scalar(
        select(workbench.ItemStage.id).where(workbench.ItemStage.id == queue.id, open_to(person.id, queue.stage))
    ):
        return None
    while queue.state == "open" and (slot := free_slot(session, queue, moment, person.id)) is not None:
        if fill_free_slots(session, project, queue):  # an expired lease may have become free just now
            continue
        end = lease_end(project, moment)
        if row is None:
            row = new_task(session, queue, person.id, "leased", slot=slot, expires=end)
        else:
            row.state, row.slot, row.expires, row.updated, row.reason = "leased", slot, end, moment, ""
        note(session, person.id, "item leased", project=project.id, item=queue.item_id, details={"stage": queue.stage})
        return row
    return None


def renew(session: Session, place: Place) -> None:
    """Extends an open lease.  Work whose lease ran out gets a slot again if one is free."""
    row = place.need_task()
    if row.state == "leased":
        row.expires = lease_end(place.project, engine.now())
    elif row.state in ("expired", "released") and place.queue.state == "open":
        lease(session, place.project, place.queue, place.person, row)
