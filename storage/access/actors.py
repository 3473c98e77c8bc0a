"""The person who acts and their rights, looked up at the start of each transaction."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from core.disk import write_text
from core.errors import InputError, NotAllowedError, StorageError
from core.text import confusable_name, stored_name
from storage.access.permissions import check_role
from storage.access.throttle import digest
from storage.records.checks import check_annotator
from storage.records.enumerations import Role
from storage.records.projects import AUTOMATIC_ANNOTATOR
from storage.schema import tables, workbench
from storage.schema.engine import ACCOUNTS_FILE, now

VISITOR_INFO = "visitor"  # of a database session's info: the name that it may speak for


def annotator_row(session: Session, name: str) -> tables.Annotator:
    """The row of this name, created if needed.  Raises InputError for a blank or unprintable name, and for one that looks like another's."""
    name = check_annotator(name)
    row = session.scalar(select(tables.Annotator).filter_by(name=name))
    if row is None:
        refuse_confusable(name, session.scalars(select(tables.Annotator.name)))
        row = tables.Annotator(name=name, created=now())
        session.add(row)
        session.flush()
    return row


def refuse_confusable(name: str, names: Iterable[str]) -> None:
    """Raises InputError if one of the taken names looks like this one (`core.text.name_shapes`) without being equal to it."""
    if other := confusable_name(name, names):
        raise InputError(f"the name '{name[:80]}' looks like '{other[:80]}', which is taken: use that one, or choose another")


def check_person(name: str) -> str:
    """The name in its stored form.  Raises InputError for a blank, an unprintable and the reserved name."""
    if (name := check_annotator(name)) == AUTOMATIC_ANNOTATOR:
        raise InputError(f"'{AUTOMATIC_ANNOTATOR}' is no person's name: choose another")
    return name


@dataclass(frozen=True, slots=True)
class Actor:
    id: int  # of the annotator's row
    name: str
    role: Role


def actor(session: Session, name: str, least_role: Role = "annotator") -> Actor:
    """The person who acts.  A session acts only under its own name, the local operator under any.  Without accounts, a write
    transaction creates the row of a new name; a read transaction gives it id 0.

    Raises NotAllowedError for a name without an active account (where the installation has accounts) or with a lesser role, InputError for a
    blank name or the reserved one.
    """
    only_oneself(session, name)
    return rights_of(session, name, least_role)


def rights_of(session: Session, name: str, least_role: Role = "annotator") -> Actor:
    """The rights of `name`, without checking the session.  Raises as `actor`."""
    name = check_person(name)
    account = session.execute(
        select(tables.Annotator.id, workbench.Account.role, workbench.Account.active, somebody_signs_in().label("in_use"))
        .outerjoin(workbench.Account, workbench.Account.annotator_id == tables.Annotator.id)
        .where(tables.Annotator.name == name)
    ).first()
    if not (account.in_use if account else in_use(session)):
        refuse_lost_accounts(session)
        if account is None and not session.info.get("writing"):
            return Actor(0, name, "manager")
        return Actor(account.id if account else annotator_row(session, name).id, name, "manager")
    if account is None and session.info.get(VISITOR_INFO) is None:
        # who began under this name, without accounts, and became the first account under another
        for details in session.scalars(select(workbench.Activity.details).filter_by(action="first account made")):
            if details.get("was_digest") == digest(name)[:16]:
                return rights_of(session, str(details["name"]), least_role)
    if account is None or not account.active:
        state = "was deactivated" if account and account.active is not None else "does not exist"
        raise NotAllowedError(f"Stopped: the account '{name[:80]}' {state}. Ask a manager.")
    check_role(name, account.role, least_role)
    return Actor(account.id, name, cast(Role, account.role))


def somebody_signs_in() -> ColumnElement[bool]:
    account = workbench.Account.__table__.alias()
    return select(account.c.id).where(or_(account.c.password.is_not(None), account.c.subject.is_not(None))).exists()


def in_use(session: Session) -> bool:
    """Whether anybody can sign in.  Raises StorageError if the accounts were lost."""
    if session.scalar(select(somebody_signs_in())):
        return True
    refuse_lost_accounts(session)
    return False


_ACCOUNTS_NOTE = """This installation of Ambiscope has accounts. While this file is here, its database does not open without them.
Line of the log at which a sign-in last ended: """


def note_accounts(file: Path | None) -> None:
    """Notes in a file beside the database that the installation has accounts.  If the disk fails, the next call tries again."""
    if file is not None and not file.exists():
        with suppress(StorageError):
            write_text(file, f"{_ACCOUNTS_NOTE}0\n")


def last_end(file: Path | None) -> int:
    """The line of the log that the last `note_end` recorded."""
    number = file.read_text(encoding="utf-8").rpartition(":")[2].strip() if file is not None and file.exists() else ""
    return int(number) if number.isdecimal() else 0


def note_end(session: Session, line: int) -> None:
    """Notes beside the database that a sign-in ended at this line of the log.  An earlier copy of the database lacks the line,
    so it is recognised when it is opened.  Raises StorageError."""
    file: Path | None = session.info.get(ACCOUNTS_FILE)
    if file is not None:
        write_text(file, f"{_ACCOUNTS_NOTE}{max(line, last_end(file))}\n")


def refuse_lost_accounts(session: Session) -> None:
    """Raises StorageError if the accounts were lost, because without accounts every name has all rights."""
    file: Path | None = session.info.get(ACCOUNTS_FILE)
    if file is not None and file.exists():
        raise StorageError(
            f"{file.with_suffix('')}: the installation has accounts, but this database has none: put the right database back, or a backup "
            f"with `python -m storage restore BACKUP`; to go on without accounts, delete {file}"
        )


def only_oneself(session: Session, name: str) -> None:
    """Raises NotAllowedError if a session's transaction would act under another name.  The local operator's may."""
    visitor = session.info.get(VISITOR_INFO)
    if visitor is not None and visitor != stored_name(name):
        raise NotAllowedError(f"you are '{visitor[:80]}': nothing is done in the name of '{name[:80]}'")
