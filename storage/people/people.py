"""People: roles, passwords (argon2id), OpenID Connect subjects, and who may do what.

Open house: while no account has a password or a subject, every name has all rights, so that one person needs no password.
The first account that can sign in must be a manager's; from then on each name has the rights of its account, and a name
without one has none.  There is always a manager who can sign in.

A session of the app acts as the visitor that a sign-in gave it, checked in each transaction (`storage.people.door`, `storage.people.visitors`).
Without a door the store is the local operator's: it acts in the name that it is given, with the rights of that name's account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotAllowedError, NotFoundError
from storage.people import passwords
from storage.people.log import note
from storage.people.permissions import check_role
from storage.people.throttle import Attempt, digest
from storage.people.visitors import Visitor, in_use, only_oneself, somebody_signs_in, visitor_of
from storage.records.annotation import SignInError
from storage.records.checks import check_choice, check_text
from storage.records.projects import AUTOMATIC, Person, Role
from storage.results.labels import annotator_row, check_annotator
from storage.results.predictions import check_page
from storage.schema import engine, tables, workbench

MAX_SUBJECT_CHARS = 1000


def joined_subject(issuer: object, subject: object) -> str:
    """How an account keeps whom a provider of OpenID Connect vouches for: issuer and subject, a blank between.

    Raises InputError where one is missing or holds white space (other pairs would read the same), or cannot be stored.
    """
    for part, what in ((issuer, "issuer"), (subject, "subject")):
        if not isinstance(part, str) or not part or any(c.isspace() for c in part):
            raise InputError(
                f"the {what} of the sign-in provider is missing or holds white space: 'ISSUER SUBJECT' is expected"
            )
    return check_text(f"{issuer} {subject}", "the subject", limit=MAX_SUBJECT_CHARS)


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
    return Actor(found.id, name, found.role)


def _person(row: tables.Annotator, account: workbench.Account | None, open_house: bool) -> Person:
    role = "manager" if open_house else account.role if account else "annotator"
    return Person(
        row.name,
        role,
        account.active if account else open_house,
        account is not None and account.password is not None,
        account is not None and account.subject is not None,
        row.created,
    )


def _load(session: Session, name: str) -> Person:
    query = select(tables.Annotator, workbench.Account).outerjoin(
        workbench.Account, workbench.Account.annotator_id == tables.Annotator.id
    )
    found = session.execute(query.where(tables.Annotator.name == name)).first()
    if found is None:
        raise NotFoundError(f"there is nobody named '{name[:80]}'")
    return _person(found[0], found[1], not in_use(session))


class People(engine.Database):
    """The part of the Store about people."""

    def accounts_in_use(self) -> bool:
        """False: open house, every name has all rights."""
        with self.reading() as session:
            return in_use(session)

    def require(self, by: str, role: Role = "annotator") -> Person:
        """Who `by` is.  Raises NotAllowedError where their role is a lesser one."""
        check_choice(role, Role, "the role")
        with self.reading() as session:
            found = actor(session, by, role)
            return Person(by, found.role, True, False, False, engine.now()) if not found.id else _load(session, by)

    def person(self, name: str) -> Person:
        """Role as it counts now: in an open house everybody is a manager.  Raises NotFoundError."""
        with self.reading() as session:
            return _load(session, name)

    def people(self, by: str, limit: int = 50, offset: int = 0) -> list[Person]:
        """Everybody, in the order in which they came.  Raises NotAllowedError for annotators, InputError for a wrong page."""
        check_page(limit, offset)
        with self.reading() as session:
            actor(session, by, "validator")
            open_house = not in_use(session)
            rows = session.execute(
                select(tables.Annotator, workbench.Account)
                .outerjoin(workbench.Account, workbench.Account.annotator_id == tables.Annotator.id)
                .where(tables.Annotator.name != AUTOMATIC)
                .order_by(tables.Annotator.id)
                .limit(limit)
                .offset(offset)
            )
            return [_person(row, account, open_house) for row, account in rows]

    def sign_in(self, name: str, password: str, address: str = "") -> Visitor:
        """`address`: where the person is, as far as it is known.

        Raises SignInError: wrong (never says what), or `seconds` to wait (`storage.people.throttle`).  Takes as long for an unknown name.
        """
        with self.writing() as session:
            attempt = Attempt(session, name, address)
            found = session.execute(
                select(tables.Annotator.id, workbench.Account.password, workbench.Account.active)
                .join(workbench.Account, workbench.Account.annotator_id == tables.Annotator.id)
                .where(tables.Annotator.name == name)
            ).first()
        stored = found.password if found is not None and found.active and found.password else None
        right = passwords.is_right(stored, password)  # outside of the transaction: it is slow on purpose
        renewed = passwords.renewed(stored, password) if right and stored else None
        with self.writing() as session:
            account = session.scalar(select(workbench.Account).filter_by(annotator_id=found.id)) if right and found else None
            if account is None or not account.active or account.password != stored:  # it may have been changed meanwhile
                note(session, None, "sign-in failed", details={"name_digest": digest(name)[:16]})
            else:
                attempt.succeeded(session)
                account.password = renewed or stored
                session.flush()
                note(session, account.annotator_id, "signed in", details={"with": "password"})
                return visitor_of(session, account.annotator_id)
        raise SignInError

    def sign_in_subject(self, subject: str) -> Visitor:
        """For OpenID Connect, after the provider has vouched.  Raises SignInError for a subject without an active account."""
        with self.writing() as session:
            found = session.scalar(
                select(workbench.Account.annotator_id).where(
                    workbench.Account.subject == subject,
                    workbench.Account.active == True,  # noqa: E712
                )
            )
            if found is not None:
                note(session, found, "signed in", details={"with": "subject"})
                return visitor_of(session, found)
            note(session, None, "sign-in failed", details={"with": "subject"})
        raise SignInError

    def add_person(self, by: str, name: str, role: Role, password: str | None = None, subject: str | None = None) -> Person:
        """Gives a name an account.  The first one that can sign in must be a manager.

        Raises NotAllowedError unless `by` is a manager, InputError for a name that has an account, a wrong role, a short
        password or a subject that is taken.
        """
        check_choice(role, Role, "the role")
        check_annotator(name)
        hashed = passwords.hashed(password) if password is not None else None
        with self.writing() as session:
            who = actor(session, by, "manager")
            if name == AUTOMATIC:
                raise InputError(f"'{AUTOMATIC}' is no person's name: choose another")
            if (hashed or subject) and role != "manager" and not in_use(session):
                raise InputError("the first account with a password must be a manager's: else nobody could manage")
            row = annotator_row(session, name)
            if session.scalar(select(workbench.Account.id).filter_by(annotator_id=row.id)) is not None:
                raise InputError(f"'{name[:80]}' has an account already: change its role or password")
            moment = engine.now()
            session.add(
                workbench.Account(
                    annotator_id=row.id,
                    role=role,
                    password=hashed,
                    subject=self._free_subject(session, subject, None),
                    active=True,
                    created=moment,
                    updated=moment,
                )
            )
            session.flush()
            note(session, who.id, "person added", details={"name": name, "role": role})
            return _load(session, name)

    @staticmethod
    def _free_subject(session: Session, subject: str | None, own: int | None) -> str | None:
        if subject is None:
            return None
        issuer, _, own_part = subject.partition(" ")
        joined_subject(issuer, own_part)
        owner = session.scalar(select(workbench.Account.id).filter_by(subject=subject))
        if owner is not None and owner != own:
            raise InputError("this subject belongs to another account")
        return subject

    @staticmethod
    def _account(session: Session, name: str) -> workbench.Account:
        found = session.scalar(
            select(workbench.Account)
            .join(tables.Annotator, tables.Annotator.id == workbench.Account.annotator_id)
            .where(tables.Annotator.name == name)
        )
        if found is None:
            raise NotFoundError(f"'{name[:80]}' has no account: add one first")
        return found

    @staticmethod
    def _keep_a_manager(session: Session, before: bool) -> None:
        """`before`: accounts were in use; the house is never opened again by taking the last way to sign in away."""
        session.flush()
        account = workbench.Account
        if not before:
            return
        managers = session.scalar(
            select(func.count())
            .select_from(account)
            .where(
                account.role == "manager",
                account.active == True,  # noqa: E712
                or_(account.password.is_not(None), account.subject.is_not(None)),
            )
        )
        if not managers:
            raise InputError("nobody who manages could sign in any more: give somebody else the role and a password first")

    def set_role(self, by: str, name: str, role: Role) -> Person:
        """Raises NotAllowedError, NotFoundError, InputError (also for the last manager who can sign in)."""
        check_choice(role, Role, "the role")
        return self._change(by, name, "role set", {"role": role}, role=role)

    def set_active(self, by: str, name: str, active: bool) -> Person:
        """An inactive account cannot sign in or do anything; its words stay.  Raises as `set_role`."""
        return self._change(by, name, "activity of account set", {"active": active}, active=active)

    def _change(self, by: str, name: str, action: str, details: dict[str, Any], **values: Any) -> Person:
        with self.writing() as session:
            who = actor(session, by, "manager")
            account, before = self._account(session, name), in_use(session)
            for key, value in values.items():
                setattr(account, key, value)
            account.updated = engine.now()
            self._keep_a_manager(session, before)
            note(session, who.id, action, details={"name": name, **details})
            return _load(session, name)

    def set_password(self, by: str, name: str, password: str, old: str | None = None, address: str = "") -> Person:
        """One's own, with the old one; or, as a manager, another's.  In an open house the first must be a manager's.  Whoever is
        signed in to this account has to sign in again.

        Raises NotAllowedError, SignInError for a wrong old one, NotFoundError, InputError.
        """
        passwords.check_password(password)
        if by == name:
            with self.reading() as session:
                stored = self._account(session, name).password
            if stored is not None:
                self.sign_in(name, old or "", address)  # counted as an attempt
        hashed = passwords.hashed(password)
        with self.writing() as session:
            who = actor(session, by, "annotator" if by == name else "manager")
            account = self._account(session, name)
            if not in_use(session) and account.role != "manager":
                raise InputError("the first account with a password must be a manager's: else nobody could manage")
            account.password, account.updated = hashed, engine.now()
            session.flush()
            note(session, who.id, "password set", details={"name": name})
            return _load(session, name)

    def set_subject(self, by: str, name: str, subject: str | None) -> Person:
        """Links an OpenID Connect subject to an account, or (None) takes it away.  Raises as `set_role`."""
        with self.writing() as session:
            who = actor(session, by, "manager")
            account, before = self._account(session, name), in_use(session)
            if subject is not None and not before and account.role != "manager":
                raise InputError("the first account that signs in must be a manager's: else nobody could manage")
            account.subject = self._free_subject(session, subject, account.id)
            account.updated = engine.now()
            self._keep_a_manager(session, before)
            note(session, who.id, "subject set", details={"name": name, "linked": subject is not None})
            return _load(session, name)
