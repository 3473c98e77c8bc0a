"""Work on a whole project in portions, the writer's lock given back in between: no save of an annotator waits for seconds.

What is under way is a row of storage.annotation.jobs.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import delete, exists, func, select
from sqlalchemy.orm import Session

from storage.annotation.jobs import begin, held, is_stale, job_of
from storage.annotation.pace import Pace
from storage.annotation.queue_order import linked, margins_of, set_ranks, table_of, update_disagreement
from storage.schema import engine, tables, workbench
from storage.schema.base import Base

WAIT_SECONDS = 10.0  # for a call that adds to the same project


def put_in_order(database: engine.Database, project: int, token: str) -> None:
    """The queue in the project's order, to its end or until another call does that."""
    item, pace = workbench.ProjectItem, Pace()
    place = -1
    while True:
        with database.reading() as session:
            job = session.scalar(select(workbench.ProjectJob).filter_by(token=token))
            if job is None:
                return
            place = job.place
            ids = list(
                session.scalars(
                    select(item.id)
                    .where(item.project_id == project, item.position > place)
                    .order_by(item.position)
                    .limit(pace.size)
                )
            )
            ordering = session.get_one(workbench.Project, project).ordering
            margins = margins_of(session, linked(session, ids)) if ordering == "uncertainty" else None
        with database.writing() as session:
            began = time.perf_counter()
            job = held(session, token)
            if job is None:
                return
            if ids:
                row = session.get_one(workbench.Project, project)
                job.place = session.scalar(select(func.max(item.position)).where(item.id.in_(ids))) or 0
                session.flush()
                if row.ordering in ("uncertainty", "disagreement"):
                    update_disagreement(session, row, ids, margins)
                else:
                    set_ranks(session, row, ids)
            else:
                session.delete(job)
        if not ids:
            return
        pace.rest(time.perf_counter() - began)


def resume_order(database: engine.Database, project: int) -> None:
    """Goes on where a process died that put the queue in order."""
    with database.reading() as session:
        job = job_of(session, project, "order")
        if job is None or not is_stale(job):
            return
    with database.writing() as session:
        job = job_of(session, project, "order")
        if job is None or not is_stale(job):
            return
        mine = begin(session, project, "order", job.place)
    put_in_order(database, project, mine.token)


def take_back(database: engine.Database, project: int, token: str) -> None:
    """Removes the items that are not there yet, and the questions that came with them and that nothing else knows."""
    item, pace = workbench.ProjectItem, Pace()
    while True:
        with database.writing() as session:
            began = time.perf_counter()
            job = held(session, token)
            if job is None:
                return
            rows = session.execute(
                select(item.id, item.question_id)
                .where(item.project_id == project, item.id >= job.place)
                .order_by(item.position.desc())
                .limit(pace.size)
            ).all()
            ids = [r.id for r in rows]
            for table in (workbench.ItemPrediction, workbench.ItemStage):
                session.execute(delete(table).where(table.item_id.in_(ids)))
            session.execute(delete(item).where(item.id.in_(ids)))
            _drop_questions(session, [r.question_id for r in rows], job)
            if not rows:
                session.delete(job)
        if not rows:
            return
        pace.rest(time.perf_counter() - began)


def _drop_questions(session: Session, ids: Sequence[int], job: workbench.ProjectJob) -> None:
    q = tables.Question
    keys = [key for table in Base.metadata.tables.values() for key in table.foreign_keys]
    used = [exists().where(key.parent == q.id) for key in keys if key.references(table_of(q))]
    session.execute(
        delete(q)
        .where(q.id.in_(list(ids)), q.created >= job.created, *(~one for one in used))
        .execution_options(synchronize_session=False)
    )
