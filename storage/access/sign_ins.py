"""The identity of a session: a sign-in gives it, a cookie restores it, and the transaction of each call checks it.

A sign-in is a row.  A `Visitor` is valid while its row exists: signing out deletes it, and a new password, another role or subject, and making
the account inactive (and active again) delete all of the account's.  A copy of the database file from before still has the row, so the number
of the log's line at which a sign-in last ended is noted beside the file.  Without accounts a visitor has only a name; it is valid while
nobody can sign in.

The secret of a row is stored as its digest.  First it is a code, which the page of the sign-in hands on, once, within a minute, from the same
browser; then the token of the cookie that the browser gets for it.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select, true
from sqlalchemy.orm import Session

from storage.access.actors import VISITOR_INFO, in_use, last_end, note_end
from storage.access.log import note
from storage.access.permissions import check_role
from storage.records.annotation import SignedOutError
from storage.records.enumerations import Role
from storage.schema import engine, tables
from storage.schema.workbench import Account, Activity, SignIn

SIGN_IN_LASTS, CODE_LASTS = timedelta(days=14), timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The identity of a session.  With an account it is made by `People`, kept on the server and never shown.  Without accounts
    it is a name."""

    name: str
    account: int = 0  # 0: without accounts
    key: str = field(default="", repr=False)  # of its sign-in
    code: str = field(default="", repr=False, compare=False)  # what the browser may exchange, once, for a cookie


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def begin_sign_in(session: Session, annotator: int, browser: str = "") -> Visitor:
    """Starts a sign-in of somebody who has just proved their identity.  Raises SignedOutError if the account has meanwhile been
    removed or deactivated."""
    row = session.execute(
        select(Account.id, Account.active, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == Account.annotator_id)
        .where(tables.Annotator.id == annotator)
    ).first()
    if row is None or not row.active:
        raise SignedOutError
    moment, key, code = engine.now(), secrets.token_hex(), secrets.token_hex()
    session.execute(delete(SignIn).where(SignIn.expires < moment))
    secret = _digest("code", code, browser)
    session.add(SignIn(account_id=row.id, key=key, secret=secret, created=moment, expires=moment + SIGN_IN_LASTS))
    return Visitor(row.name, row.id, key, code)


def token_for(session: Session, code: str, browser: str, earlier_token: str) -> str | None:
    """The token for a code; None if it is unknown, used, too old, or another browser's.  If the browser had a token of another
    account (`earlier_token`), that sign-in ends."""
    moment = engine.now()
    row = session.scalar(select(SignIn).filter_by(secret=_digest("code", code, browser)))
    if row is None or not row.created <= moment <= row.created + CODE_LASTS:
        return None
    token = secrets.token_hex()
    row.secret = _digest("cookie", token)
    earlier = session.scalar(select(SignIn).where(SignIn.secret == _digest("cookie", earlier_token)))
    if earlier is not None and earlier.account_id != row.account_id:
        note(session, session.get_one(Account, earlier.account_id).annotator_id, "signed out")
        end_sign_ins(session, earlier.account_id, earlier.key)
    return token


def visitor_for(session: Session, token: str) -> Visitor | None:
    """The visitor for a cookie's token; None if it is unknown or has ended."""
    moment = engine.now()
    row = session.execute(
        select(tables.Annotator.name, SignIn.account_id, SignIn.key)
        .join(Account, Account.annotator_id == tables.Annotator.id)
        .join(SignIn, SignIn.account_id == Account.id)
        .where(SignIn.secret == _digest("cookie", token), Account.active == True, _in_time(moment))  # noqa: E712
    ).first()
    return Visitor(*row) if row else None


def end_sign_ins(session: Session, account: int, key: str | None = None) -> None:
    """Ends all sign-ins of an account, or the one with this key.  The caller has added a line about it to the log.  Raises
    StorageError."""
    session.flush()
    rows = session.scalars(
        select(SignIn).where(SignIn.account_id == account, true() if key is None else SignIn.key == key)
    ).all()
    for row in rows:
        session.delete(row)
    if rows:
        note_end(session, session.scalar(select(func.max(Activity.id))) or 0)


def end_copied_sign_ins(database: engine.Database) -> None:
    """Ends all sign-ins of a database file that is an earlier copy, put back by hand, because some of them have ended since.

    Its log is brought to where the other one's was, so that this is done once.
    """
    number = last_end(database.accounts_file)
    with database.reading() as session:
        if (session.scalar(select(func.max(Activity.id))) or 0) >= number:
            return
    with database.writing() as session:
        session.execute(delete(SignIn))
        session.add(Activity(id=number + 1, action="earlier database opened", details={}, created=engine.now()))
        note_end(session, number + 1)


def _in_time(moment: datetime) -> ColumnElement[bool]:
    """Whether a sign-in is still valid.  One that expires later than a new one would isn't, because the clock was set back."""
    return SignIn.expires.between(moment, moment + SIGN_IN_LASTS)


def check_visitor(session: Session, visitor: Visitor | None, least_role: Role) -> None:
    """Checks a visitor at the start of a transaction, which then acts for this visitor alone (`only_oneself`).

    Raises SignedOutError for None or a visitor that is not valid any more, NotAllowedError for a lesser role.
    """
    if visitor is None or (not visitor.account and in_use(session)):
        raise SignedOutError
    if visitor.account:
        signed_in = and_(SignIn.account_id == Account.id, SignIn.key == visitor.key, _in_time(engine.now()))
        row = session.execute(
            select(tables.Annotator.name, Account.role, Account.active, SignIn.id)
            .join(tables.Annotator, tables.Annotator.id == Account.annotator_id)
            .outerjoin(SignIn, signed_in)
            .where(Account.id == visitor.account)
        ).first()
        if row is None or row.name != visitor.name or (row.active and row.id is None):
            raise SignedOutError
        if not row.active:
            managers = select(tables.Annotator.name).join(Account, Account.annotator_id == tables.Annotator.id)
            names = session.scalars(managers.where(Account.role == "manager", Account.active == True).order_by(Account.id))  # noqa: E712
            raise SignedOutError(f"the account '{visitor.name[:80]}' was deactivated: ask a manager ({', '.join(names)})")
        check_role(visitor.name, row.role, least_role)
    session.info[VISITOR_INFO] = visitor.name
