"""Predictions linked to the items of a project.  Annotators get them as suggestions; judges judge them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import ScalarSelect, delete, func, insert, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from storage.annotation.queue_order import bulk, margins_of, set_margins, table_of, update_disagreement
from storage.results.standing import chunked
from storage.schema import engine, tables, workbench

PREDICTIONS_PER_TRANSACTION = 1000  # predictions linked in one transaction: others can save in between


def linked_count(item: InstrumentedAttribute[int] | int) -> ScalarSelect[int]:
    """The number of predictions linked to an item (by id), in SQL."""
    line = workbench.ItemPrediction
    return select(func.count()).select_from(line).where(line.item_id == item).scalar_subquery()


def link(session: Session, project: workbench.Project, links: Sequence[tuple[int, int, int]]) -> int:
    """Links these (item, side, prediction), on the other side if another system has this one.  Nothing is linked if a
    prediction of its system is linked already, no side is free, or people already judge as many as the project has.  The
    margins of the items are cleared.  Returns the number of links."""
    line, prediction, task = workbench.ItemPrediction, tables.Prediction, workbench.Task
    sides: dict[int, dict[int, str]] = defaultdict(dict)  # item -> side -> system
    judged: set[int] = set()
    for part in chunked(sorted({item for item, _, _ in links})):
        present = select(line.item_id, line.side, prediction.system).join(prediction, prediction.id == line.prediction_id)
        for item, side, system in session.execute(present.where(line.item_id.in_(list(part)))):
            sides[item][side] = system
        judged.update(session.scalars(select(task.item_id).where(task.item_id.in_(list(part)), task.stage == "judging")))
    systems: dict[int, str] = {}
    for part in chunked(sorted({number for _, _, number in links})):
        rows = session.execute(select(prediction.id, prediction.system).where(prediction.id.in_(list(part))))
        systems.update({row[0]: row[1] for row in rows})
    new = []
    for item, side, number in links:
        if item in judged and len(sides[item]) >= len(project.systems):
            continue
        free = next((s for s in (side, 1 - side) if s not in sides[item]), None)
        if free is not None and systems[number] not in sides[item].values():
            sides[item][free] = systems[number]
            new.append({"item_id": item, "side": free, "prediction_id": number})
    bulk(session, insert(table_of(line)), new)
    changed = sorted({r["item_id"] for r in new})
    set_margins(session, dict.fromkeys(changed))
    update_disagreement(session, changed)
    return len(new)


def unlink_others(session: Session, project: workbench.Project) -> None:
    """Unlinks predictions after the project's systems have changed: items that nobody has opened yet (for judging, if they are
    judged) lose the predictions of other systems, except those that were added together with their prediction."""
    item, line, prediction, task = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction, workbench.Task
    opened = select(task.id).where(task.item_id == item.id)
    opened = opened.where(task.stage == "judging") if "judging" in project.stages else opened
    others = (
        select(line.id)
        .join(item, item.id == line.item_id)
        .join(prediction, prediction.id == line.prediction_id)
        .where(item.project_id == project.id, item.corrections.is_(None), prediction.system.not_in(project.systems))
        .where(~opened.exists())
    )
    changed = select(line.item_id).where(line.id.in_(others))
    for statement in (
        update(item).where(item.id.in_(changed)).values(margin=None, disagreement=None),
        delete(line).where(line.id.in_(others)),
    ):
        session.execute(statement.execution_options(synchronize_session=False))
    session.expire_all()


def link_all(database: engine.Database, project: int) -> int:
    """Links everything that isn't linked yet, PORTION at a time, and returns the number of links."""
    item, line, prediction = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction
    linked = prediction.__table__.alias()
    # (item, side, the newest prediction of that side's system) where the item has no prediction of this system yet
    links: list[tuple[int, int, int]] = []
    with database.reading() as session:
        for side, system in enumerate(session.get_one(workbench.Project, project).systems):
            lines_of_it = select(line.id).join(linked, linked.c.id == line.prediction_id).where(linked.c.system == system)
            newest = (
                select(item.id, func.max(prediction.id))
                .join(prediction, prediction.question_id == item.question_id)
                .where(item.project_id == project, prediction.system == system)
                .where(~lines_of_it.where(line.item_id == item.id).exists())
                .group_by(item.id)
            )
            links += [(key, side, newest_one) for key, newest_one in session.execute(newest)]
    count = 0
    for part in chunked(sorted(links), PREDICTIONS_PER_TRANSACTION):
        with database.writing() as session:
            count += link(session, session.get_one(workbench.Project, project), part)
    if count:
        fill_margins(database, project)
    return count


def fill_margins(database: engine.Database, project: int) -> None:
    """Computes missing margins of items that have a linked prediction, if the project's order needs them."""
    item = workbench.ProjectItem
    with database.reading() as session:
        if session.get_one(workbench.Project, project).ordering != "uncertainty":
            return
        query = select(item.id).where(item.project_id == project, item.margin.is_(None), linked_count(item.id) > 0)
        margins = margins_of(session, list(session.scalars(query)))
    for part in chunked(list(margins), PREDICTIONS_PER_TRANSACTION):
        with database.writing() as session:
            set_margins(session, {key: margins[key] for key in part})
