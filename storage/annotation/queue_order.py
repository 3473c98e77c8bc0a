"""The order of a project's queues, by columns of its items: position, margin and disagreement."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import BigInteger, Table, bindparam, select, update
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from core.metrics.agreement.answer_sets import disagreement, set_of
from core.metrics.calibration import margin
from storage.results.standing import chunked, counted_submissions
from storage.schema import tables, workbench
from storage.schema.base import Base

_PRIME = 2**31 - 1


def queue_order(project: workbench.Project) -> tuple[Any, ...]:
    """The sort order for a query of `item_stage` joined with `project_item`.  Items without the value come last, in the order
    of the file."""
    item, place = workbench.ProjectItem, workbench.ItemStage.item_id  # added at the end: by id is by position, from an index
    if project.ordering == "random":
        # a pseudo-random number of each position: a square modulo a prime, below 2^62 on the way, so that every database computes the same
        digest = hashlib.sha256(str(project.seed).encode()).digest()
        factor, shift = (int.from_bytes(part) % (_PRIME - 1) + 1 for part in (digest[:8], digest[8:16]))
        straight = (sql_cast(item.position, BigInteger) * factor + shift) % _PRIME
        return straight * straight % _PRIME, place
    if project.ordering == "uncertainty":
        return item.margin.nulls_last(), place
    if project.ordering == "disagreement":
        return item.disagreement.desc().nulls_last(), place
    return (place,)


def margin_of(trace: Mapping[str, Any]) -> float | None:
    """The certainty of a stored prediction, small if it is uncertain (core.metrics.calibration.margin), by calibrated
    probabilities if it was made with a calibration.  Without steps it is the last answer's probability; None without answers.
    """
    decisions = [
        (max(c["probability"] for c in step["candidates"]), step["eoi_probability"])
        for step in trace["steps"]
        if step["candidates"]
    ]
    value = margin(decisions, bool(trace["system"]["settings"].get("calibration")))
    if value is None and trace["answers"]:
        value = trace["answers"][-1]["probability"]
    return None if value is None else float(value)


def table_of(model: type[Base]) -> Table:
    return cast(Table, model.__table__)


def bulk(session: Session, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    """One statement of a table (not of a class) for many rows: several times as fast as through the ORM, and writers wait."""
    if rows:
        session.flush()
        session.connection().execute(statement, rows)


def margins_of(session: Session, items: Sequence[int]) -> dict[int, float]:
    """The smallest margin of each item's linked predictions.  It reads the traces, so don't compute many in a write
    transaction."""
    margins: dict[int, float] = {}
    p, link = tables.Prediction, workbench.ItemPrediction
    for part in chunked(items):
        query = select(link.item_id, p.trace).join(p, p.id == link.prediction_id).where(link.item_id.in_(list(part)))
        for item, trace in session.execute(query.execution_options(yield_per=10)):
            if (value := margin_of(trace)) is not None:
                margins[item] = min(value, margins.get(item, value))
    return margins


def set_margins(session: Session, margins: Mapping[int, float | None]) -> None:
    """`margins`: by item."""
    _set_column(session, "margin", margins.items())


def update_disagreement(session: Session, items: Sequence[int]) -> None:
    """Recomputes the disagreement of these items: between the counted annotations if there are two or more, or else between the
    linked predictions.
    """
    for part in chunked(items):
        _set_column(session, "disagreement", _disagreements(session, part))


def _set_column(session: Session, name: str, values: Iterable[tuple[int, float | None]]) -> None:
    table = table_of(workbench.ProjectItem)
    change = update(table).where(table.c.id == bindparam("item")).values({name: bindparam("value")})
    bulk(session, change, [{"item": item, "value": value} for item, value in values])
    session.flush()
    session.expire_all()


def _disagreements(session: Session, items: Sequence[int]) -> Iterable[tuple[int, float | None]]:
    link, answer, submission = workbench.ItemPrediction, tables.PredictedAnswer, workbench.Submission
    annotated: dict[int, list[list[list[str]]]] = {}
    work = counted_submissions(submission.item_id, submission.body).where(
        submission.item_id.in_(list(items)), submission.stage == "generation"
    )
    for item, body in session.execute(work):
        annotated.setdefault(item, []).append([pair["answers"] for pair in body["annotation"]["pairs"]])
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
    for item in items:
        people = annotated.get(item, [])
        sets = people if len(people) > 1 else predicted.get(item, {}).values()
        yield item, disagreement([set_of(answers) for answers in sets])
