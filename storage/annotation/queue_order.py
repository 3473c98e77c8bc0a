"""The order of a project's queues: what an item's place is computed from, and the writing of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Table, bindparam, func, select, update
from sqlalchemy.orm import Session

from core.metrics.agreement.answer_sets import disagreement, set_of
from core.metrics.calibration import margin
from storage.results.standing import counted
from storage.schema import tables, workbench
from storage.schema.base import Base

CHUNK = 400  # rows of one statement: below SQLite's bound on variables


def chunks(values: Sequence[Any], size: int = CHUNK) -> Iterable[Sequence[Any]]:
    return (values[i : i + size] for i in range(0, len(values), size))


def rank_of(order: str, seed: int, position: int, question: str, margin: float | None, disagreement: float | None) -> float:
    """An item's place in a queue; small ones come first.  `question` is its public id."""
    if order == "random":
        return int.from_bytes(hashlib.sha256(f"{seed}\0{question}".encode()).digest()[:6]) / 2**48
    if order == "uncertainty":
        return margin if margin is not None else 10.0 + position
    if order == "disagreement":
        return -disagreement if disagreement is not None else 1.0 + position
    return float(position)


def margin_of(trace: Mapping[str, Any]) -> float | None:
    """How uncertain a stored prediction is, small where it is (core.metrics.calibration.margin): by calibrated probabilities where it
    was made with a calibration.  Where there were no steps, the last answer's probability; None without answers.
    """
    decisions = [
        (max(c["probability"] for c in step["candidates"]), step["eoi_probability"])
        for step in trace["steps"]
        if step["candidates"]
    ]
    found = margin(decisions, bool(trace["system"]["settings"].get("calibration")))
    if found is not None:
        return float(found)
    return float(trace["answers"][-1]["probability"]) if trace["answers"] else None


def table_of(model: type[Base]) -> Table:
    return cast(Table, model.__table__)


def bulk(session: Session, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    """One statement of a table (not of a class) for many rows: several times as fast as through the ORM, and writers wait."""
    if rows:
        session.flush()
        session.connection().execute(statement, rows)


def set_ranks(session: Session, project: workbench.Project, items: Sequence[int]) -> None:
    """Puts these items of a project in their places in its queues."""
    item, queue = workbench.ProjectItem, workbench.ItemStage
    session.flush()
    if project.ordering == "random":
        query = (
            select(item.id, item.position, tables.Question.public_id, item.margin, item.disagreement)
            .join(tables.Question, tables.Question.id == item.question_id)
            .where(item.id.in_(list(items)))
        )
        table = table_of(workbench.ItemStage)
        rows = [{"of": r.id, "value": rank_of("random", project.seed, *r[1:])} for r in session.execute(query)]
        bulk(session, update(table).where(table.c.item_id == bindparam("of")).values(rank=bindparam("value")), rows)
    else:  # rank_of, in SQL
        places: dict[str, ColumnElement[Any]] = {
            "file": item.position * 1.0,
            "uncertainty": func.coalesce(item.margin, 10.0 + item.position),
            "disagreement": func.coalesce(-item.disagreement, 1.0 + item.position),
        }
        value = select(places[project.ordering]).where(item.id == queue.item_id).scalar_subquery()
        # by items alone: with the project's id too, SQLite would look through its whole queue for them
        change = update(queue).where(queue.item_id.in_(list(items))).values(rank=value)
        session.execute(change.execution_options(synchronize_session=False))
    session.expire_all()


def margins_of(session: Session, predictions: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """The smallest margin of each item's predictions (rows of them).  Takes reading the traces: nothing to do in a write transaction."""
    found: dict[int, float] = {}
    of = {prediction: item for item, many in predictions.items() for prediction in many}
    p = tables.Prediction
    for part in chunks(list(of)):
        traces = session.execute(select(p.id, p.trace).where(p.id.in_(list(part))).execution_options(yield_per=10))
        for prediction, trace in traces:
            margin = margin_of(trace)
            if margin is not None:
                found[of[prediction]] = min(margin, found.get(of[prediction], margin))
    return found


def update_disagreement(
    session: Session, project: workbench.Project, items: Sequence[int], margins: Mapping[int, float] | None = None
) -> None:
    """Computes the disagreement of these items anew, stores their margins where some are given, and puts them in their places in the queues.

    Disagreement is between the counted annotations, where there are two or more, else between the linked predictions.
    """
    for part in chunks(items):
        _store_disagreement(session, part, margins or {})
        if project.ordering in ("uncertainty", "disagreement"):
            set_ranks(session, project, part)


def _store_disagreement(session: Session, items: Sequence[int], margins: Mapping[int, float]) -> None:
    link, answer, sent = workbench.ItemPrediction, tables.PredictedAnswer, workbench.Submission
    said: dict[int, list[list[list[str]]]] = {}
    work = counted(sent.item_id, sent.body).where(sent.item_id.in_(list(items)), sent.stage == "generation")
    for item, body in session.execute(work):
        said.setdefault(item, []).append([pair["answers"] for pair in body["annotation"]["pairs"]])
    predicted: dict[int, dict[int, list[list[str]]]] = {}
    rows = session.execute(
        select(link.item_id, link.side, answer.text)
        .outerjoin(answer, answer.prediction_id == link.prediction_id)
        .where(link.item_id.in_(list(items)))
    )
    for item, side, text in rows:
        answers = predicted.setdefault(item, {}).setdefault(side, [])
        if text is not None:
            answers.append([text])
    found: list[dict[str, Any]] = []
    for item in items:
        people = said.get(item, [])
        sets = people if len(people) > 1 else predicted.get(item, {}).values()
        value = disagreement([set_of(answers) for answers in sets])
        found.append({"of": item, "value": value, "margin_of": margins.get(item)})
    table = table_of(workbench.ProjectItem)
    change = update(table).where(table.c.id == bindparam("of")).values(disagreement=bindparam("value"))
    bulk(session, change, [{"of": r["of"], "value": r["value"]} for r in found])
    known = [{"of": r["of"], "value": r["margin_of"]} for r in found if r["margin_of"] is not None]
    bulk(session, update(table).where(table.c.id == bindparam("of")).values(margin=bindparam("value")), known)
    session.expire_all()


def linked(session: Session, items: Sequence[int]) -> dict[int, list[int]]:
    """Item -> the rows of its linked predictions."""
    link = workbench.ItemPrediction
    found: dict[int, list[int]] = {}
    for item, prediction in session.execute(
        select(link.item_id, link.prediction_id).where(link.item_id.in_(list(items))).order_by(link.item_id, link.side)
    ):
        found.setdefault(item, []).append(prediction)
    return found
