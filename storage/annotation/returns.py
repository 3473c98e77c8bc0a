"""Work that comes back: returned by a validator, or taken back by its author.  Nothing submitted is changed; versions are added."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InputError
from storage.access.actors import actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import add_version, began_to_count, ceased_to_count, lease, retract_automatic
from storage.annotation.places import find_place
from storage.annotation.tasks import lease_end, load_task, same_work, task_row
from storage.records.annotation import Task
from storage.records.checks import MAX_NOTE_CHARS, check_text
from storage.records.enumerations import WorkStage
from storage.records.projects import AUTOMATIC
from storage.schema import engine, tables, workbench


class Returns(engine.Part):
    """The part of the Store about returning and undoing."""

    @allowed_to("see others' work")
    def return_item(self, item: str, annotator: str, stage: WorkStage, reason: str, by: str) -> Task:
        """Sends submitted work back to its annotator: it keeps its slot, counts no longer, and comes first in their queue.

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
            if row is None or row.state != "submitted" or annotator == AUTOMATIC:  # its returned work nobody would take up
                raise InputError(f"'{annotator[:80]}' has submitted nothing here that could be returned")
            if stage == "generation" and row.slot is not None:
                retract_automatic(session, place.item.id)
            was_counted = row.slot is not None
            row.state, row.reason, row.expires, row.updated = "returned", reason, None, engine.now()
            if was_counted:
                ceased_to_count(session, place.project, place.queue, row)
            reopen_draft(session, row)
            details = {"stage": stage, "to": annotator, "reason": reason}
            note(session, sender.id, "item returned", project=row.project_id, item=row.item_id, details=details)
            return load_task(session, row)

    @allowed_to("annotate")
    def undo(self, item: str, annotator: str, stage: WorkStage) -> Task:
        """Takes the last step back: what was submitted is a draft again.  After a submission: a new version equal to the one before; after the
        first one: nothing counts, its slot is kept.  After a skip: open again, with a slot where one is free.

        Raises InputError where there is nothing to undo, or a person validated the item already.
        """
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            row = place.need_task()
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


def reopen_draft(session: Session, task: workbench.Task) -> None:
    """The last draft of submitted work becomes work in progress again, as a new version."""
    draft = session.scalar(select(workbench.Draft).where(same_work(workbench.Draft, task)))
    if draft is not None and not draft.open:
        draft.open, draft.updated = True, engine.now()
        draft.version += 1
