"""A manager's actions on selected items, on all of them or none: remove, reopen, change the number of people, make gold."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session, undefer

from core.errors import InputError, NotFoundError
from core.trace import to_json
from storage.access.actors import actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import update_items
from storage.annotation.places import project_row
from storage.annotation.returns import send_back
from storage.annotation.slots import set_slots, stage_row
from storage.exchange.final_answers import final_of
from storage.records.checks import MAX_NOTE_CHARS, check_choice, check_text
from storage.records.enumerations import WorkStage
from storage.records.projects import MAX_ANNOTATORS, MIXED_SLOTS
from storage.results.standing import chunked, is_current_submission
from storage.schema import engine, workbench

_item, _task, _queue = workbench.ProjectItem, workbench.Task, workbench.ItemStage


class Selection(engine.Part):
    """The part of the Store about several items at once; `items` are their ids."""

    @allowed_to("manage projects")
    def remove_items(self, user: str, project: str, items: Sequence[str]) -> int:
        """Takes items that nobody has opened out of a project, and returns how many.  Their questions and predictions stay stored.

        Raises InputError naming an item that somebody has worked on, NotFoundError, NotAllowedError unless `user` is a manager.
        """
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            rows = _rows(session, row, items)
            for part in chunked(list(rows)):
                for used in (_task, workbench.Comment):
                    if (number := session.scalar(select(used.item_id).where(used.item_id.in_(part)).limit(1))) is not None:
                        raise InputError(
                            f"item {rows[number].position + 1} cannot be removed: somebody has opened it or commented on it; "
                            "leave it out of the selection"
                        )
            for part in chunked(list(rows)):
                for table in (workbench.ItemPrediction, workbench.Assignment, workbench.Reading, _queue):
                    session.execute(delete(table).where(table.item_id.in_(part)).execution_options(synchronize_session=False))
                session.execute(delete(_item).where(_item.id.in_(part)).execution_options(synchronize_session=False))
            session.expire_all()
            note(session, manager.id, "items removed", project=row.id, details={"removed": len(rows), "items": list(items)})
            return len(rows)

    @allowed_to("manage projects")
    def reopen_items(self, user: str, project: str, stage: WorkStage, items: Sequence[str], reason: str) -> int:
        """Sends all work that people submitted for these items at a stage back to them, and returns the number of submissions.

        Raises InputError without a reason, and for a generation that a person validated already; NotFoundError, NotAllowedError unless
        `user` is a manager.
        """
        check_choice(stage, WorkStage, "the stage")
        check_text(reason, "the reason", limit=MAX_NOTE_CHARS, empty=False)
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            count = 0
            for item in _rows(session, row, items).values():
                queue = stage_row(session, item.id, stage)
                current = select(_task).join(workbench.Submission, is_current_submission())
                mine = (_task.item_id == item.id, _task.stage == stage, _task.state == "submitted")
                for task in session.scalars(current.where(*mine, workbench.Submission.automatic == False)).all():  # noqa: E712
                    if queue is not None:
                        send_back(session, row, queue, task, reason, manager)
                        count += 1
            return count

    @allowed_to("manage projects")
    def set_people(self, user: str, project: str, items: Sequence[str], number: int) -> None:
        """Sets how many people write, and how many judge, each of these items; one validates.  Gold items don't change.

        Raises InputError outside 1..100 and while more people hold an item, NotFoundError, NotAllowedError unless `user` is a manager.
        """
        if not 1 <= number <= MAX_ANNOTATORS:
            raise InputError(f"the number of people per item is {number}; it must be 1 to {MAX_ANNOTATORS}")
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            set_slots(session, row, number, list(_rows(session, row, items)))
            note(session, manager.id, "items changed", project=row.id, details={"items": len(items), "annotators": number})
            key = row.id
        update_items(self.database, key)

    @allowed_to("manage projects")
    def make_gold(self, user: str, project: str, item: str) -> None:
        """Turns a finished item into a gold item: its final answer set becomes the reference, and its submissions no longer
        count as data.

        Raises InputError for an item that is gold already or not finished, NotFoundError, NotAllowedError unless `user` is a manager.
        """
        with self.writing() as session:
            manager, row = actor(session, user, "manager"), project_row(session, project)
            (entry,) = _rows(session, row, [item]).values()
            if entry.gold is not None:
                raise InputError("this is a gold item already")
            final = final_of(session, entry)
            if final is None:
                raise InputError("this item has no final answer set yet: it has to be validated, or a majority has to agree")
            entry.gold, entry.references = {"annotations": to_json((final.annotation,))}, to_json((final.annotation,))
            session.flush()
            stages = update(_queue).where(_queue.item_id == entry.id)
            for stage, values in (
                (_queue.stage != "validation", {"gold": True, "slots": MIXED_SLOTS, "state": "open"}),
                (_queue.stage == "validation", {"gold": True, "state": "done"}),
            ):
                session.execute(stages.where(stage).values(**values).execution_options(synchronize_session=False))
            session.execute(delete(workbench.Assignment).where(workbench.Assignment.item_id == entry.id))
            session.expire_all()
            note(session, manager.id, "items changed", project=row.id, item=entry.id, details={"gold": True})


def _rows(session: Session, project: workbench.Project, items: Sequence[str]) -> dict[int, workbench.ProjectItem]:
    """The rows by id, in the project's order.  Raises NotFoundError for one that isn't in it, InputError for none."""
    rows: list[workbench.ProjectItem] = []
    for part in chunked(list(dict.fromkeys(items))):
        query = (
            select(_item).where(_item.project_id == project.id, _item.public_id.in_(part)).options(undefer(_item.references))
        )
        rows += session.scalars(query)
    if not items:
        raise InputError("no item is selected")
    if missing := set(items) - {row.public_id for row in rows}:
        raise NotFoundError(f"there is no item '{min(missing)[:80]}' in this project")
    return {row.id: row for row in sorted(rows, key=lambda row: row.position)}
