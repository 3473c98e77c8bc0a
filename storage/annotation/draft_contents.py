"""Rows of drafts, and the log of what somebody searched and opened for an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InputError
from core.json_io import dumps
from storage.records.annotation import Interaction, InteractionLog
from storage.records.checks import plain_problem
from storage.records.rows import record_of
from storage.schema import engine, workbench

MAX_INTERACTIONS = 5_000  # of one person and item: more are not a person's

MAX_DRAFT_CHARS = 2_000_000  # of its JSON


def check_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises InputError for what is not plain JSON, or too long."""
    plain = dict(body)
    if problem := plain_problem(plain):
        raise InputError(f"the draft cannot be stored: {problem}")
    if (size := len(dumps(plain))) > MAX_DRAFT_CHARS:
        raise InputError(f"the draft cannot be stored: it has {size} characters; at most {MAX_DRAFT_CHARS} are allowed")
    return plain


def put_draft(
    session: Session, task: workbench.Task, row: workbench.Draft | None, body: dict[str, Any], *, open: bool
) -> workbench.Draft:
    """Writes a draft over `row` (the task's), its version one more; equal content changes nothing."""
    moment = engine.now()
    if row is None:
        row = workbench.Draft(item_id=task.item_id, stage=task.stage, annotator_id=task.annotator_id, version=1, created=moment)
        session.add(row)
    elif (row.body, row.open) == (body, open):
        return row
    else:
        row.version += 1
    row.body, row.open, row.updated = body, open, moment
    session.flush()
    return row


def log_of(session: Session, item: int, stage: str, annotator: int) -> InteractionLog:
    line = workbench.Interaction
    rows = session.scalars(
        select(line)
        .where(line.item_id == item, line.stage == stage, line.annotator_id == annotator)
        .order_by(line.id)
        .limit(MAX_INTERACTIONS)
    )
    return InteractionLog.of(record_of(Interaction, row) for row in rows)
