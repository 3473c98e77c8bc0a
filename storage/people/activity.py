"""Reading the log of who did what: pages of lines, the newest first."""

from __future__ import annotations

from sqlalchemy import select

from core.errors import InputError
from storage.people.log import ACTIONS
from storage.people.people import actor
from storage.people.permissions import can
from storage.records.projects import Activity as ActivityRecord
from storage.results.predictions import PAGE
from storage.schema import engine, tables, workbench


class Activity(engine.Database):
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
            line = workbench.Activity
            query = (
                select(line, tables.Annotator.name, workbench.Project.public_id, workbench.ProjectItem.public_id)
                .outerjoin(tables.Annotator, tables.Annotator.id == line.annotator_id)
                .outerjoin(workbench.Project, workbench.Project.id == line.project_id)
                .outerjoin(workbench.ProjectItem, workbench.ProjectItem.id == line.item_id)
                .order_by(line.id.desc())
                .limit(limit)
            )
            if not can(person.role, "manager"):
                query = query.where(line.annotator_id == person.id)
            for value, column in (
                (project, workbench.Project.public_id),
                (item, workbench.ProjectItem.public_id),
                (who, tables.Annotator.name),
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
