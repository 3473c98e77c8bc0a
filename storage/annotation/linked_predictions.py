"""Predictions of a system, linked to the items of a project: annotators get them as suggestions, judges judge them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ScalarSelect, func, insert, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from storage.annotation.queue_order import bulk, margins_of, set_margins, table_of, update_disagreement
from storage.results.standing import chunked
from storage.schema import engine, tables, workbench

PORTION = 1000  # predictions linked in one transaction: others can save in between


def _unlinked(session: Session, project: workbench.Project) -> list[tuple[int, int, int]]:
    """(item, side, the newest prediction of that side's system) where the item has no prediction of it yet."""
    item, link, prediction = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction
    links: list[tuple[int, int, int]] = []
    for side, system in enumerate(project.systems):
        present = select(link.id).where(link.item_id == item.id, link.side == side).exists()
        newest = (
            select(item.id, func.max(prediction.id))
            .join(prediction, prediction.question_id == item.question_id)
            .where(item.project_id == project.id, prediction.system == system, ~present)
            .group_by(item.id)
        )
        links += [(i, side, p) for i, p in session.execute(newest)]
    return sorted(links)


def linked_count(item: InstrumentedAttribute[int] | int) -> ScalarSelect[int]:
    """How many predictions of an item (by id) are linked, in SQL."""
    line = workbench.ItemPrediction
    return select(func.count()).select_from(line).where(line.item_id == item).scalar_subquery()


def link(session: Session, links: Sequence[tuple[int, int, int]]) -> int:
    """Links these (item, side, prediction) that are not linked yet; their items have no margin then."""
    line = workbench.ItemPrediction
    linked: set[tuple[int, int]] = set()
    for part in chunked(sorted({item for item, _, _ in links})):
        rows = session.execute(select(line.item_id, line.side).where(line.item_id.in_(list(part))))
        linked.update((item, side) for item, side in rows)
    new = [{"item_id": i, "side": s, "prediction_id": p} for i, s, p in links if (i, s) not in linked]
    bulk(session, insert(table_of(line)), new)
    changed = sorted({r["item_id"] for r in new})
    set_margins(session, dict.fromkeys(changed))
    update_disagreement(session, changed)
    return len(new)


def link_all(database: engine.Database, project: int) -> int:
    """Links what is not linked yet, PORTION at a time; returns how many."""
    with database.reading() as session:
        links = _unlinked(session, session.get_one(workbench.Project, project))
    count = 0
    for part in chunked(links, PORTION):
        with database.writing() as session:
            count += link(session, part)
    if count:
        fill_margins(database, project)
    return count


def fill_margins(database: engine.Database, project: int) -> None:
    """The margins of items that have a linked prediction and none yet, where the project's order needs them."""
    item = workbench.ProjectItem
    with database.reading() as session:
        if session.get_one(workbench.Project, project).ordering != "uncertainty":
            return
        query = select(item.id).where(item.project_id == project, item.margin.is_(None), linked_count(item.id) > 0)
        margins = margins_of(session, list(session.scalars(query)))
    for part in chunked(list(margins), PORTION):
        with database.writing() as session:
            set_margins(session, {key: margins[key] for key in part})
