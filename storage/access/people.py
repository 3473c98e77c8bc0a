"""People: roles, passwords (argon2id), OpenID Connect subjects.

Without accounts (no account has a password or a subject) every name has all rights, so that one person needs no password.
The first account that can sign in must be a manager's (`create_manager` gives it to the current user, with all their work); from then
on each name has the rights of its account, and a name without one has none.  There is always a manager who can sign in.

A session of the app acts as the `Visitor` that a sign-in gave it, checked in each transaction (`storage.store.SessionStore`, `storage.access.sign_ins`).
A plain `Store` is the local operator's: it acts in the name that it is given, with the rights of that name's account.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotAllowedError, NotFoundError
from core.text import stored_name
from storage.access import passwords
from storage.access.actors import (
    actor,
    annotator_row,
    check_person,
    in_use,
    note_accounts,
    refuse_confusable,
)
from storage.access.log import ACTIONS, note
from storage.access.permissions import allowed_to, can
from storage.access.sign_ins import Visitor, begin_sign_in, end_sign_ins, token_for, visitor_for
from storage.access.throttle import Attempt, digest
from storage.records.annotation import FieldError, SignInError
from storage.records.checks import check_choice, check_page, check_text
from storage.records.enumerations import Role
from storage.records.projects import AUTOMATIC_ANNOTATOR, Activity, Person
from storage.schema import engine, tables, workbench

MAX_SUBJECT_CHARS = 1000
_PEOPLE = select(tables.Annotator, workbench.Account).outerjoin(
    workbench.Account, workbench.Account.annotator_id == tables.Annotator.id
)


def joined_subject(issuer: object, subject: object) -> str:
    """The OpenID Connect identity as an account stores it: issuer and subject, separated by a blank.

    Raises InputError if one is missing or holds white space (other pairs would read the same), or cannot be stored.
    """
    for part, name in ((issuer, "issuer"), (subject, "subject")):
        if not isinstance(part, str) or not part or any(c.isspace() for c in part):
            raise InputError(
                f"the {name} of the sign-in provider is missing or holds white space: 'ISSUER SUBJECT' is expected"
            )
    return check_text(f"{issuer} {subject}", "the subject", limit=MAX_SUBJECT_CHARS)


@contextmanager
def of_field(field: str) -> Iterator[None]:
    """Turns an InputError of its block into a FieldError of this field."""
    try:
        yield
    except InputError as error:
        raise FieldError(field, str(error)) from None


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
    match = session.execute(_PEOPLE.where(tables.Annotator.name == stored_name(name))).first()
    if match is None:
        raise NotFoundError(f"there is nobody named '{name[:80]}'")
    return _person(match[0], match[1], not in_use(session))


class People(engine.Part):
    """The part of the Store about people and the log of what they did."""

    @allowed_to("sign in")
    def accounts_in_use(self) -> bool:
        """False: without accounts, every name has all rights.  Raises StorageError if the accounts were lost."""
        with self.reading() as session:
            is_used = in_use(session)
        if is_used:
            note_accounts(self.database.accounts_file)
        return is_used

    @allowed_to("annotate")
    def require(self, user: str, role: Role = "annotator") -> Person:
        """The record of `user`.  Raises NotAllowedError if their role is lower."""
        check_choice(role, Role, "the role")
        with self.reading() as session:
            person = actor(session, user, role)
            return Person(user, person.role, True, False, False, engine.now()) if not person.id else _load(session, person.name)

    @allowed_to("see others' work")
    def people(self, user: str, limit: int = 50, offset: int = 0) -> list[Person]:
        """Everybody, in the order in which they joined.  Raises NotAllowedError for annotators, InputError for a wrong page."""
        check_page(limit, offset)
        with self.reading() as session:
            actor(session, user, "validator")
            open_house = not in_use(session)
            query = (
                _PEOPLE.where(tables.Annotator.name != AUTOMATIC_ANNOTATOR)
                .order_by(tables.Annotator.id)
                .limit(limit)
                .offset(offset)
            )
            return [_person(row, account, open_house) for row, account in session.execute(query)]

    @allowed_to("see others' work")
    def annotators(self) -> list[str]:
        """Everybody's name, in the order in which they joined."""
        with self.reading() as session:
            return list(session.scalars(select(tables.Annotator.name).order_by(tables.Annotator.id)))

    @allowed_to("sign in")
    def sign_in(self, name: str, password: str, address: str = "", browser: str = "") -> Visitor:
        """`address`: the person's network address, or empty; `browser`: identifies their browser.

        Raises SignInError: wrong (never says what), or `seconds` to wait (`storage.access.throttle`).  Takes as long for an unknown name.
        """
        name = stored_name(name)
        with self.writing() as session:
            attempt = Attempt(session, name, address)
            match = session.execute(
                select(tables.Annotator.id, workbench.Account.password, workbench.Account.active)
                .join(workbench.Account, workbench.Account.annotator_id == tables.Annotator.id)
                .where(tables.Annotator.name == name)
            ).first()
        stored_hash = match.password if match is not None and match.active and match.password else None
        is_right = passwords.is_right(stored_hash, password)  # outside of the transaction: it is slow on purpose
        renewed = passwords.renewed(stored_hash, password) if is_right and stored_hash else None
        with self.writing() as session:
            account = session.scalar(select(workbench.Account).filter_by(annotator_id=match.id)) if is_right and match else None
            if account is None or not account.active or account.password != stored_hash:  # it may have been changed meanwhile
                note(session, None, "sign-in failed", details={"name_digest": digest(name)[:16]})
            else:
                attempt.succeeded(session)
                account.password = renewed or stored_hash
                note(session, account.annotator_id, "signed in", details={"with": "password"})
                return begin_sign_in(session, account.annotator_id, browser)
        raise SignInError

    @allowed_to("sign in")
    def sign_in_subject(self, subject: str) -> Visitor:
        """Signs in with OpenID Connect, after the provider has vouched.  Raises SignInError for a subject without an active
        account."""
        with self.writing() as session:
            account = workbench.Account
            annotator_id = session.scalar(select(account.annotator_id).filter_by(subject=subject, active=True))
            if annotator_id is not None:
                note(session, annotator_id, "signed in", details={"with": "subject"})
                return begin_sign_in(session, annotator_id)
            note(session, None, "sign-in failed", details={"with": "subject"})
        raise SignInError

    @allowed_to("sign in")
    def resume(self, token: str) -> Visitor | None:
        """The visitor for a cookie's token; None if it is unknown or has ended."""
        with self.reading() as session:
            return visitor_for(session, token)

    @allowed_to("sign in")
    def exchange(self, code: str, browser: str = "", earlier_token: str = "") -> str | None:
        """The token for the code of a sign-in in this browser, whose `earlier_token` ends; None for a code that isn't valid
        (any more)."""
        with self.writing() as session:
            return token_for(session, code, browser, earlier_token)

    @allowed_to("sign in")
    def sign_out(self, visitor: Visitor | None) -> None:
        """Ends this sign-in, in all tabs that use it."""
        if visitor is not None and visitor.account:
            with self.writing() as session:
                note(session, session.get_one(workbench.Account, visitor.account).annotator_id, "signed out")
                end_sign_ins(session, visitor.account, visitor.key)

    @allowed_to("annotate")
    def sign_out_everywhere(self, user: str) -> None:
        """Ends all sign-ins of an account.  Raises NotAllowedError, NotFoundError."""
        with self.writing() as session:
            person, account = actor(session, user), self._account(session, user)
            note(session, person.id, "signed out everywhere")
            end_sign_ins(session, account.id)

    @allowed_to("manage people")
    def create_manager(
        self, user: str, name: str, password: str | None = None, subject: str | None = None, browser: str = ""
    ) -> Visitor:
        """Creates the first account.  `user`, who worked without one, gets it under `name` with all their work, and is signed
        in.

        Raises FieldError for a name that another one has or that looks like it, and as `add_person`; NotAllowedError where there are accounts.
        """
        with self._adding(name, password, subject) as (session, name, hashed):
            manager = actor(session, user, "manager")
            if in_use(session):
                raise NotAllowedError("somebody has an account already: ask a manager for yours")
            row = session.get_one(tables.Annotator, manager.id)
            with of_field("name"):
                others = [n for n in session.scalars(select(tables.Annotator.name)) if n != row.name]
                if name in others:
                    raise InputError(f"'{name[:80]}' has work here already: choose another name, or go on under this one first")
                refuse_confusable(name, others)
            row.name = name
            self._give_account(session, row, "manager", hashed, subject)
            self._keep_a_manager(session, False)
            note(session, row.id, "first account made", details={"name": name, "was_digest": digest(user)[:16]})
            return begin_sign_in(session, row.id, browser)

    @allowed_to("manage people")
    def add_person(self, user: str, name: str, role: Role, password: str | None = None, subject: str | None = None) -> Person:
        """Gives a name an account.  The first person who can sign in must be a manager.

        Raises NotAllowedError unless `user` is a manager, FieldError for a name that has an account or looks like another, a wrong role, a short
        password or a subject that is taken.
        """
        with of_field("role"):
            check_choice(role, Role, "the role")
        with self._adding(name, password, subject) as (session, name, hashed):
            manager = actor(session, user, "manager")
            with of_field("name"):
                before, row = in_use(session), annotator_row(session, name)
                if session.scalar(select(workbench.Account.id).filter_by(annotator_id=row.id)) is not None:
                    raise InputError(f"'{name[:80]}' has an account already: change its role or password")
            self._give_account(session, row, role, hashed, subject)
            with of_field("role"):
                self._keep_a_manager(session, before)
            note(session, manager.id, "person added", details={"name": name, "role": role})
            return _load(session, name)

    @contextmanager
    def _adding(self, name: str, password: str | None, subject: str | None) -> Iterator[tuple[Session, str, str | None]]:
        """A transaction for a new account, with the name in its stored form and the password hashed.  Raises FieldError."""
        with of_field("name"):
            name = check_person(name)
        with of_field("password"):
            hashed = passwords.hashed(password) if password is not None else None
        with self._noting_accounts() as session:
            self._check_subject(session, subject, None)
            yield session, name, hashed

    @contextmanager
    def _noting_accounts(self) -> Iterator[Session]:
        """A transaction after which somebody may be able to sign in for the first time."""
        with self.writing() as session:
            yield session
            signs_in = in_use(session)
        if signs_in:
            note_accounts(self.database.accounts_file)

    @staticmethod
    def _give_account(session: Session, row: tables.Annotator, role: Role, password: str | None, subject: str | None) -> None:
        account = session.scalar(select(workbench.Account).filter_by(annotator_id=row.id))
        account = account or workbench.Account(annotator_id=row.id, created=engine.now())
        account.role, account.active, account.password, account.subject = role, True, password, subject
        account.updated = engine.now()
        session.add(account)

    @staticmethod
    def _check_subject(session: Session, subject: str | None, account: int | None) -> None:
        """Raises InputError for an invalid subject, or one of an account other than `account`."""
        if subject is None:
            return
        with of_field("subject"):
            issuer, _, issued_subject = subject.partition(" ")
            joined_subject(issuer, issued_subject)
            if session.scalar(select(workbench.Account.id).filter_by(subject=subject)) not in (None, account):
                raise InputError("this subject belongs to another account")

    @staticmethod
    def _account(session: Session, name: str) -> workbench.Account:
        account = session.scalar(
            select(workbench.Account)
            .join(tables.Annotator, tables.Annotator.id == workbench.Account.annotator_id)
            .where(tables.Annotator.name == stored_name(name))
        )
        if account is None:
            raise NotFoundError(f"'{name[:80]}' has no account: add one first")
        return account

    @staticmethod
    def _keep_a_manager(session: Session, before: bool) -> None:
        """Raises InputError if somebody can sign in now or could `before`, but no manager can sign in after the change, so that
        removing the last way to sign in never gives all rights to every name.
        """
        session.flush()
        account = workbench.Account
        managers = select(account.id).filter_by(role="manager", active=True)
        managers = managers.where(or_(account.password.is_not(None), account.subject.is_not(None)))
        if (before or in_use(session)) and session.scalar(managers.limit(1)) is None:
            raise InputError(
                "nobody who manages could sign in any more: give somebody else the role and a password first"
                if before
                else "Create a manager account first."
            )

    @allowed_to("manage people")
    def set_role(self, user: str, name: str, role: Role) -> Person:
        """Changes a role.  Raises NotAllowedError, NotFoundError, InputError (also for the last manager who can sign in)."""
        check_choice(role, Role, "the role")
        return self._change(user, name, "role set", {"role": role}, {"role": role})

    @allowed_to("manage people")
    def set_active(self, user: str, name: str, active: bool) -> Person:
        """Activates or deactivates an account.  An inactive account can't sign in or do anything; its contributions stay.
        Raises as `set_role`."""
        return self._change(user, name, "activity of account set", {"active": active}, {"active": active})

    def _change(
        self, user: str, name: str, action: str, values: dict[str, Any], details: dict[str, Any], least_role: Role = "manager"
    ) -> Person:
        """Sets these columns of an account and ends its sign-ins.  `details` go into the log."""
        with self._noting_accounts() as session:
            changer = actor(session, user, least_role)
            account, before = self._account(session, name), in_use(session)
            self._check_subject(session, values.get("subject"), account.id)
            for key, value in values.items():
                setattr(account, key, value)
            account.updated = engine.now()
            self._keep_a_manager(session, before)
            note(session, changer.id, action, details={"name": name, **details})
            end_sign_ins(session, account.id)
            return _load(session, name)

    @allowed_to("annotate")
    def set_password(self, user: str, name: str, password: str, old: str | None = None, address: str = "") -> Person:
        """Sets one's own password, given the old one, or as a manager somebody else's.  The first one must be a manager's.
        People who are signed in to this account have to sign in again.

        Raises NotAllowedError, SignInError for a wrong old one, NotFoundError, InputError.
        """
        with of_field("password"):
            passwords.check_password(password)
        if user == name:
            with self.reading() as session:
                stored_hash = self._account(session, name).password
            if stored_hash is not None:
                self.sign_in(name, old or "", address)  # counted as an attempt
        values = {"password": passwords.hashed(password)}
        return self._change(user, name, "password set", values, {}, "annotator" if user == name else "manager")

    @allowed_to("manage people")
    def set_subject(self, user: str, name: str, subject: str | None) -> Person:
        """Links an OpenID Connect subject to an account, or (None) removes it.  Raises as `set_role`."""
        return self._change(user, name, "subject set", {"subject": subject}, {"linked": subject is not None})

    @allowed_to("annotate")
    def activity(
        self,
        user: str,
        *,
        project: str | None = None,
        person: str | None = None,
        action: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[Activity]:
        """The log, newest line first.  `before` is the id of the previous page's last line.  Only managers see other people's
        lines.

        Raises InputError for a limit outside 1..500 or an unknown action, NotAllowedError.
        """
        check_page(limit, 0)
        if action is not None and action not in ACTIONS:
            raise InputError(f"unknown action '{action[:80]}'; known: {', '.join(ACTIONS)}")
        with self.reading() as session:
            viewer = actor(session, user)
            line = workbench.Activity
            query = (
                select(line, tables.Annotator.name, workbench.Project.public_id, workbench.ProjectItem.public_id)
                .outerjoin(tables.Annotator, tables.Annotator.id == line.annotator_id)
                .outerjoin(workbench.Project, workbench.Project.id == line.project_id)
                .outerjoin(workbench.ProjectItem, workbench.ProjectItem.id == line.item_id)
                .order_by(line.id.desc())
                .limit(limit)
            )
            if not can(viewer.role, "manager"):
                query = query.where(line.annotator_id == viewer.id)
            filters: dict[Any, str | None] = {
                workbench.Project.public_id: project,
                tables.Annotator.name: person,
                line.action: action,
            }
            query = query.where(*(column == value for column, value in filters.items() if value is not None))
            if before is not None:
                query = query.where(line.id < before)
            return [
                Activity(row.id, name or "", row.action, project_id or "", item_id or "", row.details, row.created)
                for row, name, project_id, item_id in session.execute(query)
            ]
