"""`Store`: the only door to the database.

Guarantees: 1. Each public method is one transaction: all of it is stored or nothing (export and backup: one read
transaction for the file, then one that notes it). 2. What a method acknowledged survives a kill of the process, and
with SQLite's FULL synchronisation a power cut. 3. Values in and out are frozen dataclasses of core.types and
storage.records.results; no ORM row leaves. 4. A save with equal content changes nothing, so pages may save at each rerun. 5.
`find_...` may return None, `get_...` raises NotFoundError with the id. 6. Errors are core.errors: InputError (yours to
mend), ConflictError (look at both versions), StorageError (the disk's or the file's).

A Store may be shared by threads; processes each open their own.
"""

from __future__ import annotations

from types import TracebackType

from storage.exchange.backup import Maintenance
from storage.people.activity import Activity
from storage.people.people import People
from storage.projects.item_views import ItemViews
from storage.projects.items import Items
from storage.projects.projects import Projects
from storage.projects.qualification import Qualifying
from storage.results.evaluations import Evaluations
from storage.results.labels import Judgments
from storage.results.predictions import Predictions
from storage.schema.engine import parse_url
from storage.schema.upgrade import ensure_current
from storage.work.drafts import Drafts
from storage.work.queue import Queue
from storage.work.returns import Rework
from storage.work.reviews import Reviews
from storage.work.submissions import Submissions


class Workbench(People, Activity, Projects, Items, ItemViews, Qualifying, Queue, Rework, Drafts, Submissions, Reviews):
    """The part of the Store for annotation by several people: each method checks who asks (storage.people.people)."""


class Store(Predictions, Judgments, Evaluations, Workbench, Maintenance):
    """Opens `url`, creating or upgrading the database first.

    `upgraded_from` is the backup made before an upgrade, else None.  Raises InputError for a wrong URL, NewerDatabaseError,
    StorageError for a damaged, foreign or unwritable file; then the file is as it was.
    """

    def __init__(self, url: str) -> None:
        self.upgraded_from = ensure_current(url)
        super().__init__(parse_url(url))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
