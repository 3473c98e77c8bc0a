"""What is under way with a whole project: rows of `project_job`, one of a kind a project.

- `items`: questions are being added.  Items from `place` on are not there yet for anybody (`there`); they are all there from the last,
  small transaction on, which takes the row away.  Where a process died before, the next call takes them back.
- `order`: the queue is being put in the project's order; it is, up to position `place`.  Where a process died, the next call goes on.

A row belongs to the call whose token it bears.  One that was not touched for `STALE` is another's to take over; whose token is gone
changes nothing more.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, true
from sqlalchemy.orm import Session

from core.errors import ConflictError
from storage.schema import engine, workbench

STALE = timedelta(seconds=60)


class BusyError(ConflictError):
    """Another call does the same to this project right now."""


def job_of(session: Session, project: int, kind: str) -> workbench.ProjectJob | None:
    return session.scalar(select(workbench.ProjectJob).filter_by(project_id=project, kind=kind))


def is_stale(job: workbench.ProjectJob) -> bool:
    return abs(engine.now() - job.touched) > STALE  # one of the future: the clock was set back


def begin(session: Session, project: int, kind: str, place: int) -> workbench.ProjectJob:
    """A job of one's own; one of the same kind is replaced, and its call stops."""
    session.execute(delete(workbench.ProjectJob).filter_by(project_id=project, kind=kind))
    moment = engine.now()
    row = workbench.ProjectJob(
        project_id=project, kind=kind, token=uuid.uuid4().hex, place=place, created=moment, touched=moment
    )
    session.add(row)
    session.flush()
    return row


def held(session: Session, token: str) -> workbench.ProjectJob | None:
    """One's own job, touched; None where another call took it over."""
    row = session.scalar(select(workbench.ProjectJob).filter_by(token=token))
    if row is not None:
        row.touched = engine.now()
    return row


def there(session: Session, project: int, item: Any) -> ColumnElement[bool]:
    """Condition on a column of item ids of this project: not those that are still being added."""
    job = job_of(session, project, "items")
    return true() if job is None else item < job.place


def hidden(project: Any, item: Any) -> ColumnElement[bool]:
    """Condition on columns of project and item ids, for queries over all projects: still being added."""
    job = workbench.ProjectJob
    return exists().where(job.project_id == project, job.kind == "items", job.place <= item)


def own_job(session: Session, token: str) -> workbench.ProjectJob:
    job = held(session, token)
    if job is None:
        raise BusyError("this took so long that another call took over: nothing was added; do it again")
    return job
