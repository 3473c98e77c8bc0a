"""Predictions of a system, linked to the items of a project: annotators get them as suggestions, judges judge them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from storage.annotation.jobs import own_job
from storage.annotation.pace import Pace
from storage.annotation.queue_order import bulk, chunks, linked, margins_of, table_of, update_disagreement
from storage.schema import engine, tables, workbench


def unlinked(session: Session, project: workbench.Project) -> list[tuple[int, int, int]]:
    """(item, side, the newest prediction of that side's system) where the item has none of it yet."""
    item, link, prediction = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction
    found: list[tuple[int, int, int]] = []
    for side, system in enumerate(project.systems):
        present = select(link.id).where(link.item_id == item.id, link.side == side).exists()
        newest = (
            select(item.id, func.max(prediction.id))
            .join(prediction, prediction.question_id == item.question_id)
            .where(item.project_id == project.id, prediction.system == system, ~present)
            .group_by(item.id)
        )
        found += [(i, side, p) for i, p in session.execute(newest)]
    return found


def link(
    session: Session,
    project: workbench.Project,
    wanted: Sequence[tuple[int, int, int]],
    margins: Mapping[int, float] | None,
) -> int:
    """Links these (item, side, prediction) that are not linked yet.  `margins`: of their items, read before; None: they are read
    here where the order needs them."""
    line = workbench.ItemPrediction
    taken: set[tuple[int, int]] = set()
    for part in chunks(sorted({item for item, _, _ in wanted})):
        found = session.execute(select(line.item_id, line.side).where(line.item_id.in_(list(part))))
        taken.update((item, side) for item, side in found)
    rows = [{"item_id": i, "side": s, "prediction_id": p} for i, s, p in wanted if (i, s) not in taken]
    bulk(session, insert(table_of(line)), rows)
    changed = sorted({r["item_id"] for r in rows})
    if margins is None and project.ordering == "uncertainty":
        margins = margins_of(session, linked(session, changed))
    update_disagreement(session, project, changed, margins)
    return len(rows)


def link_all(database: engine.Database, project: int, token: str | None = None) -> int:
    """In portions; `token`: of the job that they are a part of."""
    with database.reading() as session:
        wanted = sorted(unlinked(session, session.get_one(workbench.Project, project)))
    done, count, pace = 0, 0, Pace()
    while done < len(wanted):
        part = wanted[done : done + pace.size]
        done += len(part)
        with database.reading() as session:
            margins = None
            if session.get_one(workbench.Project, project).ordering == "uncertainty":
                known = linked(session, sorted({item for item, _, _ in part}))
                for item, _, prediction in part:
                    known.setdefault(item, []).append(prediction)
                margins = margins_of(session, known)
        with database.writing() as session:
            began = time.perf_counter()
            if token is not None:
                own_job(session, token)
            count += link(session, session.get_one(workbench.Project, project), part, margins)
        pace.rest(time.perf_counter() - began)
    return count
