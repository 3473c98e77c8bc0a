"""`Store`: the only way to the database; `SessionStore`: the same as a session of the app may use it.

Its parts hold the methods (`store.queue.next_item(...)`); none knows another.

Guarantees: 1. Each public method of a part is one transaction: all of it is stored or nothing (export and backup: one read
transaction for the file, then one that notes it). 2. What a method acknowledged survives a kill of the process, and
with SQLite's FULL synchronisation a power cut. 3. Values in and out are frozen dataclasses of core.types and
storage.records.results; no ORM row leaves. 4. A save with equal content changes nothing, so pages may save at each rerun. 5.
`find_...` may return None, `get_...` raises NotFoundError with the id. 6. Errors are core.errors: InputError (correct the
input), ConflictError (look at both versions), StorageError (the disk's or the file's).

A Store may be shared by threads; processes each open their own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import NoReturn

from sqlalchemy.orm import Session

from core.errors import NotAllowedError
from storage.access.blindness import Blindness
from storage.access.people import People
from storage.access.permissions import ACTIONS, Name
from storage.access.sign_ins import Visitor, check_visitor, end_copied_sign_ins
from storage.annotation.assignments import Assignments
from storage.annotation.comments import Comments
from storage.annotation.drafts import Drafts
from storage.annotation.intake import Intake
from storage.annotation.items import Items
from storage.annotation.projects import Projects
from storage.annotation.queue import Queue
from storage.annotation.returns import Returns
from storage.annotation.reviews import Reviews
from storage.annotation.selection import Selection
from storage.annotation.submissions import Submissions
from storage.annotation.waiting import Waiting
from storage.exchange.backup import Maintenance
from storage.exchange.exports.snapshots import Exports
from storage.exchange.imports.importing import Imports
from storage.results.evaluations import Evaluations
from storage.results.labels import Labels
from storage.results.predictions import Predictions
from storage.schema.creation import ensure_current
from storage.schema.engine import Database, Part, parse_url


class StoreParts:
    """The parts with the methods.  A function that takes it works for the operator and for a session."""

    def __init__(self, database: Database) -> None:
        self.people = People(database)
        self.predictions = Predictions(database)
        self.labels = Labels(database)
        self.evaluations = Evaluations(database)
        self.projects = Projects(database)
        self.intake = Intake(database)
        self.items = Items(database)
        self.queue = Queue(database)
        self.drafts = Drafts(database)
        self.submissions = Submissions(database)
        self.returns = Returns(database)
        self.reviews = Reviews(database)
        self.assignments = Assignments(database)
        self.comments = Comments(database)
        self.blindness = Blindness(database)
        self.waiting = Waiting(database)
        self.selection = Selection(database)
        self.exports = Exports(database)
        self.imports = Imports(database)
        self.maintenance = Maintenance(database)


class Store(StoreParts):
    """Opens `url`, creating the database if there is none.

    Raises InputError for a wrong URL, NewerDatabaseError, StorageError for a file of an earlier schema and a damaged, foreign or
    unwritable one; then the file is as it was.
    """

    def __init__(self, url: str) -> None:
        ensure_current(url)
        self.database = Database(parse_url(url))
        super().__init__(self.database)
        end_copied_sign_ins(self.database)

    def guarded(self, guard: Callable[[Session], None]) -> Store:
        """The same store, with `guard` called first in each transaction; what it raises ends it."""
        store = copy.copy(self)
        store.database = self.database.guarded(guard)
        StoreParts.__init__(store, store.database)
        return store

    def close(self) -> None:
        """Closes all connections; the last one folds the WAL into the file."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class SessionStore(StoreParts):
    """A `Store` for the visitor that `current_visitor` returns at each call (None: nobody is signed in).

    A call raises SignedOutError where the visitor is not signed in any more, NotAllowedError where the role is below the action's, the
    method is for the local operator, or it would act under another name; else it is the store's.
    """

    def __init__(self, store: Store, current_visitor: Callable[[], Visitor | None]) -> None:
        super().__init__(store.database.guarded(_refuse))
        self._store, self._current_visitor = store, current_visitor
        for part in vars(self).values():
            if isinstance(part, Part):
                part.database_for = self._database_for

    def _database_for(self, action: str | None) -> Database:
        if action is None:
            _refuse()
        database = self.store_for(action).database  # type: ignore[arg-type]
        if database.guard is not None:  # before anything else: some write a file first
            with database.reading():
                pass
        return database

    def store_for(self, action: Name) -> Store:
        """A store for a function of storage that takes one.  Each of its transactions is checked for this action."""
        role = ACTIONS[action].role
        return (
            self._store
            if role is None
            else self._store.guarded(partial(check_visitor, visitor=self._current_visitor(), least_role=role))
        )

    def allow(self, action: Name) -> None:
        """Checks an action outside of the store.  Raises as a call."""
        with self.store_for(action).database.reading():
            pass

    def may(self, action: Name) -> bool:
        """Whether to offer an action.  The action itself is checked again."""
        try:
            self.allow(action)
        except NotAllowedError:
            return False
        return True


def _refuse(_session: Session | None = None) -> NoReturn:
    raise NotAllowedError("this is for the local operator (python -m storage), not for a session")
