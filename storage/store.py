"""`Store`: the only door to the database.

Its parts hold the methods (`store.queue.next_item(...)`); none knows another.

Guarantees: 1. Each public method of a part is one transaction: all of it is stored or nothing (export and backup: one read
transaction for the file, then one that notes it). 2. What a method acknowledged survives a kill of the process, and
with SQLite's FULL synchronisation a power cut. 3. Values in and out are frozen dataclasses of core.types and
storage.records.results; no ORM row leaves. 4. A save with equal content changes nothing, so pages may save at each rerun. 5.
`find_...` may return None, `get_...` raises NotFoundError with the id. 6. Errors are core.errors: InputError (yours to
mend), ConflictError (look at both versions), StorageError (the disk's or the file's).

A Store may be shared by threads; processes each open their own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import TracebackType

from sqlalchemy.orm import Session

from storage.access.people import People
from storage.annotation.drafts import Drafts
from storage.annotation.intake import Intake
from storage.annotation.items import Items
from storage.annotation.projects import Projects
from storage.annotation.queue import Queue
from storage.annotation.returns import Returns
from storage.annotation.reviews import Reviews
from storage.annotation.submissions import Submissions
from storage.exchange.backup import Maintenance
from storage.exchange.exports.formats import FORMATS
from storage.exchange.exports.snapshots import Exports
from storage.exchange.imports.importing import Imports
from storage.results.evaluations import Evaluations
from storage.results.labels import Labels
from storage.results.predictions import Predictions
from storage.schema.creation import ensure_current
from storage.schema.engine import Database, parse_url


class Store:
    """Opens `url`, creating the database where there is none.

    Raises InputError for a wrong URL, NewerDatabaseError, StorageError for a file of an earlier schema and a damaged, foreign or
    unwritable one; then the file is as it was.
    """

    def __init__(self, url: str) -> None:
        ensure_current(url)
        self._compose(Database(parse_url(url)))
        self.database.check_file()  # from here on it is known which file this is

    def _compose(self, database: Database) -> None:
        self.database = database
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
        self.exports = Exports(database, FORMATS)
        self.imports = Imports(database)
        self.maintenance = Maintenance(database)

    def gated(self, gate: Callable[[Session], None]) -> Store:
        """The same store, with `gate` called first in each transaction; what it raises ends it."""
        made = copy.copy(self)
        made._compose(self.database.gated(gate))
        return made

    def close(self) -> None:
        """Closes all connections; the last one folds the WAL into the file."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
