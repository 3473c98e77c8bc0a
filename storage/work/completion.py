"""What follows when a piece of work begins or ceases to count, inside its write transaction: the item's state, the next stage's,
automatic validation, and what the tables of schema 0001 say of it.
"""

from __future__ import annotations

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.annotating.agreement import agree, merged
from core.errors import InputError
from core.types import Annotation
from storage.people.actors import annotator_row
from storage.people.log import note
from storage.records.annotation import Content, JudgingWork, ValidationWork
from storage.records.projects import AUTOMATIC
from storage.records.results import Stage, State
from storage.results.annotations import put_annotation
from storage.results.labels import put_judgment
from storage.schema import engine, tables, workbench
from storage.tasks.contents import annotations_from_json, content_from_json, content_to_json
from storage.tasks.queue_order import reckon
from storage.tasks.slots import counted, holders, promotable, stage_row
from storage.tasks.tasks import new_task, stands, task_row


def content_of(session: Session, task: workbench.Task) -> Content:
    """The current version of what was submitted."""
    row = session.scalar(
        select(workbench.Submission).filter_by(
            item_id=task.item_id, stage=task.stage, annotator_id=task.annotator_id, version=task.version
        )
    )
    if row is None:
        raise LookupError(f"task {task.id} has no submission {task.version}")
    return content_from_json(row.body, task.stage)


def sources_of(session: Session, item: workbench.ProjectItem) -> list[tuple[str, int, Annotation]]:
    """(annotator, version, annotation) of what is validated, by slot: counted annotations; without a generation stage, those of
    the question file as 'file 1', 'file 2', ... of version 0.
    """
    queue = stage_row(session, item.id, "generation")
    if queue is None:
        return [(f"file {n}", 0, a) for n, a in enumerate(annotations_from_json(item.references), 1)]
    task, sent = workbench.Task, workbench.Submission
    rows = session.execute(
        select(tables.Annotator.name, sent.version, sent.body)
        .join(task, task.annotator_id == tables.Annotator.id)
        .join(sent, stands())
        .where(task.item_id == item.id, task.stage == "generation", task.state == "submitted", task.slot.is_not(None))
        .order_by(task.slot)
    )
    found = []
    for name, version, body in rows:
        content = content_from_json(body, "generation")
        if not isinstance(content, JudgingWork):
            found.append((name, version, content.annotation))
    return found


def began_to_count(
    session: Session,
    project: workbench.Project,
    queue: workbench.ItemStage,
    task: workbench.Task,
    content: Content | None = None,
) -> None:
    """After a submission got its slot, or a new version of one that had it.  `content`: its current version, where it is at hand."""
    session.flush()
    content = content if content is not None else content_of(session, task)
    item = session.get_one(workbench.ProjectItem, task.item_id)
    _write_through(session, item, task, content, submitted=True)
    if counted(session, queue) >= queue.slots:
        queue.state = "done"
    if queue.stage == "generation":
        session.flush()
        if queue.slots > 1:
            reckon(session, project, [item.id])
        if queue.state == "done" and "validation" in project.stages:
            _open_validation(session, project, item)


def ceased_to_count(session: Session, project: workbench.Project, queue: workbench.ItemStage, task: workbench.Task) -> None:
    """After a submission was returned or reopened; it keeps its slot for its annotator."""
    session.flush()
    item = session.get_one(workbench.ProjectItem, task.item_id)
    _write_through(session, item, task, content_of(session, task), submitted=False)
    queue.state = "open"
    if queue.stage == "generation":
        session.flush()
        reckon(session, project, [item.id])
        retract_automatic(session, item.id)
        later = stage_row(session, item.id, "validation")
        if later is not None:
            later.state = "waiting"
    session.flush()


def retract_automatic(session: Session, item: int) -> None:
    """Takes back a validation that nobody made.  Raises InputError where a person validated the item: that has to be returned
    first.
    """
    for held in holders(session, item, "validation"):
        if held.state == "submitted":
            if session.get_one(tables.Annotator, held.annotator_id).name != AUTOMATIC:
                raise InputError("this item is validated already: the validation has to be returned first")
            held.state, held.slot, held.updated = "released", None, engine.now()
            later = stage_row(session, item, "validation")
            if later is not None:
                later.state = "open"
    session.flush()


def fill_free_slots(session: Session, project: workbench.Project, queue: workbench.ItemStage) -> bool:
    """After a slot became free: work over the number takes it, the earliest first.  True where some did."""
    session.flush()
    filled = False
    while (late := promotable(session, queue)) is not None:
        taken = {row.slot for row in holders(session, queue.item_id, queue.stage)}
        free = next((n for n in range(queue.slots) if n not in taken), None)
        if free is None:
            break
        late.slot = free
        began_to_count(session, project, queue, late)
        filled = True
    return filled


def _open_validation(session: Session, project: workbench.Project, item: workbench.ProjectItem) -> None:
    queue = stage_row(session, item.id, "validation")
    if queue is None or queue.state == "done":
        return
    queue.state = "open"
    sources = sources_of(session, item)
    if holders(session, item.id, "validation") or not agree([annotation for _, _, annotation in sources]):
        return
    who = annotator_row(session, AUTOMATIC)
    task = task_row(session, item.id, "validation", who.id) or new_task(session, queue, who.id, "released")
    task.version += 1
    task.state, task.slot, task.updated = "submitted", 0, engine.now()
    content = ValidationWork(
        merged([annotation for _, _, annotation in sources]), sources=tuple((name, version) for name, version, _ in sources)
    )
    session.add(
        workbench.Submission(
            project_id=project.id,
            item_id=item.id,
            stage="validation",
            annotator_id=who.id,
            version=task.version,
            restores=None,
            body=content_to_json(content),
            seconds=0.0,
            guidelines=0,
            score=None,
            automatic=True,
            created=engine.now(),
        )
    )
    queue.state = "done"
    note(session, None, "item validated automatically", project=project.id, item=item.id, details={"version": task.version})
    session.flush()


def _write_through(
    session: Session, item: workbench.ProjectItem, task: workbench.Task, content: Content, *, submitted: bool
) -> None:
    """Into `annotation` and `judgment`, which exports read; what no longer counts is a draft there."""
    who = session.get_one(tables.Annotator, task.annotator_id)
    if who.name == AUTOMATIC:
        return
    state = "submitted" if submitted else "draft"
    if not isinstance(content, JudgingWork):
        question = session.get_one(tables.Question, item.question_id)
        put_annotation(session, question, who, content.annotation, cast(Stage, task.stage), cast(State, state))
        return
    rows = session.execute(
        select(tables.Prediction.public_id, tables.PredictedAnswer.position, tables.PredictedAnswer.id)
        .join(tables.Prediction, tables.Prediction.id == tables.PredictedAnswer.prediction_id)
        .where(tables.Prediction.public_id.in_({a.prediction_id for a in content.answers}))
    )
    ids = {(prediction, position): answer for prediction, position, answer in rows}
    for answer in content.answers:
        put_judgment(
            session,
            ids[(answer.prediction_id, answer.position)],
            answer.prediction_id,
            answer.position,
            who,
            answer.verdict,
            answer.note,
            cast(State, state),
        )
