"""Reading the log of who did what: pages of lines, the newest first."""

from __future__ import annotations

from sqlalchemy import select

from core.errors import InputError
from storage import db, models
from storage import models_annotation as tables
from storage.log import ACTIONS
from storage.people import actor
from storage.permissions import can
from storage.predictions import PAGE
from storage.records_annotation import Activity as ActivityRecord


class Activity(db.Database):
    """The part of the Store about the log."""

    def activity(
        self,
        by: str,
        *,
        project: str | None = None,
        item: str | None = None,
        who: str | None = None,
        action: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[ActivityRecord]:
        """The newest first; `before` is the id of the last one of the page before.  Who is no manager sees their own lines.

        Raises InputError for a limit outside 1..500 or an unknown action, NotAllowedError.
        """
        if not 1 <= limit <= PAGE:
            raise InputError(f"limit {limit}: a page has 1 to {PAGE} rows")
        if action is not None and action not in ACTIONS:
            raise InputError(f"unknown action '{action[:80]}'; known: {', '.join(ACTIONS)}")
        with self.reading() as session:
            person = actor(session, by)
            line = tables.Activity
            query = (
                select(line, models.Annotator.name, tables.Project.public_id, tables.ProjectItem.public_id)
                .outerjoin(models.Annotator, models.Annotator.id == line.annotator_id)
                .outerjoin(tables.Project, tables.Project.id == line.project_id)
                .outerjoin(tables.ProjectItem, tables.ProjectItem.id == line.item_id)
                .order_by(line.id.desc())
                .limit(limit)
            )
            if not can(person.role, "manager"):
                query = query.where(line.annotator_id == person.id)
            for value, column in (
                (project, tables.Project.public_id),
                (item, tables.ProjectItem.public_id),
                (who, models.Annotator.name),
                (action, line.action),
            ):
                if value is not None:
                    query = query.where(column == value)
            if before is not None:
                query = query.where(line.id < before)
            return [
                ActivityRecord(row.id, name or "", row.action, of or "", about or "", row.details, row.created)
                for row, name, of, about in session.execute(query)
            ]
