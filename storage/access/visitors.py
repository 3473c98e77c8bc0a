"""Who a session is: what a sign-in gives it, and how that is checked in the transaction of each call.

A `Visitor` names an account and its state at the sign-in.  It stands as long as that state does: a new password, another role or
subject, and making the account inactive (and active again) all end it.  A visitor of an open house has only a name; it stands
while nobody can sign in.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from storage.access.actors import VISITOR, in_use
from storage.access.permissions import check_role
from storage.records.annotation import SignedOutError
from storage.records.enumerations import Role
from storage.schema import tables, workbench

_STATE = (
    workbench.Account.id,
    workbench.Account.updated,
    workbench.Account.password,
    workbench.Account.subject,
    workbench.Account.role,
    workbench.Account.active,
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Of an account: made by `People.sign_in` and `People.sign_in_subject`, kept on the server, never shown.  Of an open house: a name."""

    name: str
    account: int = 0  # 0: of an open house
    epoch: str = field(default="", repr=False)  # digest of the account's state at the sign-in


def _account(session: Session, which: ColumnElement[bool]) -> Any:
    """The state of an account and its name; None where there is none."""
    return session.execute(
        select(*_STATE, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == workbench.Account.annotator_id)
        .where(which)
    ).first()


def _epoch(row: Any) -> str:
    state = "\0".join(str(value) for value in row[:6])
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def visitor_of(session: Session, annotator: int) -> Visitor:
    """Of somebody who has just shown who they are.  Raises SignedOutError where the account is gone or inactive by now."""
    row = _account(session, workbench.Account.annotator_id == annotator)
    if row is None or not row.active:
        raise SignedOutError
    return Visitor(row.name, row.id, _epoch(row))


def check_visitor(session: Session, visitor: Visitor | None, needed: Role) -> None:
    """At the begin of a transaction; from then on it speaks for this visitor alone (`only_oneself`).

    Raises SignedOutError for nobody, or a visitor that does not stand any more, NotAllowedError for a lesser role.
    """
    if visitor is None:
        raise SignedOutError
    if not visitor.account:
        if in_use(session):
            raise SignedOutError
    else:
        row = _account(session, workbench.Account.id == visitor.account)
        if row is None or not row.active or _epoch(row) != visitor.epoch or row.name != visitor.name:
            raise SignedOutError
        check_role(visitor.name, row.role, needed)
    session.info[VISITOR] = visitor.name
