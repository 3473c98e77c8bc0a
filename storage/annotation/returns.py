"""Returns work to its author, on a validator's request or the author's own. Nothing submitted is changed; versions are
added."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InputError
from storage.access import blindness
from storage.access.actors import Actor, actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import add_version, began_to_count, ceased_to_count, lease, retract_automatic
from storage.annotation.places import find_place
from storage.annotation.tasks import lease_end, load_task, same_work, task_row
from storage.records.annotation import Task
from storage.records.checks import MAX_NOTE_CHARS, check_text
from storage.records.enumerations import WorkStage
from storage.records.projects import AUTOMATIC_ANNOTATOR
from storage.schema import engine, tables, workbench


class Returns(engine.Part):
    """The part of the Store about returning and undoing."""

    @allowed_to("see others' work")
    def return_item(self, item: str, annotator: str, stage: WorkStage, reason: str, by: str) -> Task:
        """Sends submitted work back to its annotator.  It keeps its slot, no longer counts, and comes first in their queue.

        Raises InputError without a reason, for work that is not submitted, an automatic validation (return an annotation, and
        it is taken back), and a generation that a person validated already;
        NotFoundError, NotAllowedError unless `by` is a validator.
        """
        check_text(reason, "the reason", limit=MAX_NOTE_CHARS, empty=False)
        with self.writing() as session:
            sender = actor(session, by, "validator")
            annotator_id = session.scalar(select(tables.Annotator.id).filter_by(name=annotator))
            place = find_place(session, item, by, stage)
            row = task_row(session, place.item.id, stage, annotator_id) if annotator_id is not None else None
            # nobody would take up returned work of the automatic annotator
            if row is None or row.state != "submitted" or annotator == AUTOMATIC_ANNOTATOR:
                raise InputError(f"'{annotator[:80]}' has submitted nothing here that could be returned")
            send_back(session, place.project, place.queue, row, reason, sender)
            return load_task(session, row)

    @allowed_to("annotate")
    def undo(self, item: str, annotator: str, stage: WorkStage) -> Task:
        """Undoes the last step, so that a submission becomes a draft again.  After a later submission the result is a new
        version equal to the one before; after the first one nothing counts and the slot is kept.  After a skip the item is open
        again, with a slot if one is free.

        Raises InputError if there is nothing to undo, a person validated the item already, or its author has seen other people's work.
        """
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            row = place.need_task()
            blindness.refuse_after_asking(session, place.person.id, place.item.id)
            if row.state == "skipped":
                if not lease(session, place.project, place.queue, place.person, row):
                    row.state, row.reason, row.updated = "expired", "", engine.now()
                return load_task(session, row)
            if row.state != "submitted":
                raise InputError("there is nothing to undo")
            if stage == "generation" and row.slot is not None:
                retract_automatic(session, place.item.id)
            details = {"stage": stage, "version": row.version}
            submission = workbench.Submission
            query = select(submission).where(same_work(submission, row)).order_by(submission.version.desc())
            versions = session.scalars(query).all()
            current = versions[0].restores or versions[0].version  # one that an undo made counts as the one that it restored
            earlier = next((s for s in versions if s.version < current), None)
            holds_slot = row.slot is not None
            if earlier is None:
                moment = engine.now()
                row.state, row.expires = ("leased", lease_end(place.project, moment)) if holds_slot else ("expired", None)
                row.updated = moment
                if holds_slot:
                    ceased_to_count(session, place.project, place.queue, row)
            else:
                restored = earlier.restores or earlier.version
                add_version(session, row, earlier.body, guidelines=earlier.guidelines, restores=restored)
                if holds_slot:
                    began_to_count(session, place.project, place.queue, row)
            reopen_draft(session, row)
            action = "submission undone" if earlier else "item reopened"
            note(session, place.person.id, action, project=row.project_id, item=row.item_id, details=details)
            return load_task(session, row)


def send_back(
    session: Session, project: workbench.Project, queue: workbench.ItemStage, task: workbench.Task, reason: str, sender: Actor
) -> None:
    """Returns submitted work to its author, with a line in the log.  Raises InputError for a generation that a person validated already."""
    was_counted = task.slot is not None
    if task.stage == "generation" and was_counted:
        retract_automatic(session, task.item_id)
    task.state, task.reason, task.expires, task.updated = "returned", reason, None, engine.now()
    if was_counted:
        ceased_to_count(session, project, queue, task)
    reopen_draft(session, task)
    details = {"stage": task.stage, "to": session.get_one(tables.Annotator, task.annotator_id).name, "reason": reason}
    note(session, sender.id, "item returned", project=task.project_id, item=task.item_id, details=details)


def reopen_draft(session: Session, task: workbench.Task) -> None:
    """The last draft of submitted work becomes work in progress again, as a new version."""
    draft = session.scalar(select(workbench.Draft).where(same_work(workbench.Draft, task)))
    if draft is not None and not draft.open:
        draft.open, draft.updated = True, engine.now()
        draft.version += 1
