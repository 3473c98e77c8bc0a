"""The rows of a project and its items, found by their names."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.errors import NotFoundError
from storage.schema import workbench


def project_row(session: Session, project: str) -> workbench.Project:
    row = session.scalar(select(workbench.Project).filter_by(public_id=project))
    if row is None:
        raise NotFoundError(f"there is no project '{project[:80]}'")
    return row


def item_row(session: Session, item: str) -> workbench.ProjectItem:
    row = session.scalar(select(workbench.ProjectItem).filter_by(public_id=item))
    if row is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    return row


def latest_guidelines(session: Session, project: int) -> int:
    """The version in force; 0: none was written."""
    return session.scalar(select(func.max(workbench.Guideline.version)).filter_by(project_id=project)) or 0
