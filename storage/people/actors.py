"""Who acts, and what they may do: the rows of people, looked up at the begin of what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InputError, NotAllowedError
from storage.people.permissions import check_role
from storage.people.visitors import in_use, only_oneself, somebody_signs_in
from storage.records.checks import check_annotator
from storage.records.projects import AUTOMATIC, Role
from storage.schema import tables, workbench
from storage.schema.engine import now


def annotator_row(session: Session, name: str) -> tables.Annotator:
    """The row of this name, made if need be.  Raises InputError for a blank or unprintable name."""
    check_annotator(name)
    row = session.scalar(select(tables.Annotator).filter_by(name=name))
    if row is None:
        row = tables.Annotator(name=name, created=now())
        session.add(row)
        session.flush()
    return row


@dataclass(frozen=True, slots=True)
class Actor:
    id: int  # of the annotator's row
    name: str
    role: Role


def actor(session: Session, name: str, needed: Role = "annotator") -> Actor:
    """Who acts: a visitor under their own name only, the local operator under any.  In a write transaction an open house makes the
    row of a new name; in a read it has id 0.

    Raises NotAllowedError for a name without an active account (unless the house is open) or with a lesser role, InputError for a
    blank name or the reserved one.
    """
    only_oneself(session, name)
    return rights_of(session, name, needed)


def rights_of(session: Session, name: str, needed: Role = "annotator") -> Actor:
    """What `name` may do, whoever asks.  Raises as `actor`."""
    check_annotator(name)
    if name == AUTOMATIC:
        raise InputError(f"'{AUTOMATIC}' is no person's name: choose another")
    found = session.execute(
        select(tables.Annotator.id, workbench.Account.role, workbench.Account.active, somebody_signs_in())
        .outerjoin(workbench.Account, workbench.Account.annotator_id == tables.Annotator.id)
        .where(tables.Annotator.name == name)
    ).first()
    if not (found[3] if found else in_use(session)):
        if found is None and not session.info.get("writing"):
            return Actor(0, name, "manager")
        return Actor(found.id if found else annotator_row(session, name).id, name, "manager")
    if found is None or not found.active:
        raise NotAllowedError(f"'{name[:80]}' may not work here: sign in, or ask a manager for an account")
    check_role(name, found.role, needed)
    return Actor(found.id, name, cast(Role, found.role))
