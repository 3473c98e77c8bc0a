"""Writes the append-only log: who did what, when, to which item.  Triggers refuse to change or delete a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from storage.schema import engine, workbench

ACTIONS = (
    "signed in",
    "sign-in failed",
    "signed out",
    "signed out everywhere",
    "earlier database opened",
    "first account made",
    "person added",
    "role set",
    "password set",
    "subject set",
    "activity of account set",
    "project created",
    "project changed",
    "guidelines saved",
    "items added",
    "predictions linked",
    "items assigned",
    "items changed",
    "items removed",
    "item leased",
    "item released",
    "item skipped",
    "item returned",
    "item submitted",
    "submission undone",
    "item reopened",
    "others' words shown",
    "item validated automatically",
)


def note(
    session: Session,
    annotator: int | None,
    action: str,
    *,
    project: int | None = None,
    item: int | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Adds a line to the log, inside the transaction that it describes.  The ids are row ids."""
    if action not in ACTIONS:
        raise ValueError(f"{action!r} is no action of the log")
    session.add(
        workbench.Activity(
            annotator_id=annotator,
            action=action,
            project_id=project,
            item_id=item,
            details=dict(details or {}),
            created=engine.now(),
        )
    )
