"""`Store`: the only door to the database.

Guarantees: 1. Each public method is one transaction: all of it is stored or nothing (export and backup: one read
transaction for the file, then one that notes it). 2. What a method acknowledged survives a kill of the process, and
with SQLite's FULL synchronisation a power cut. 3. Values in and out are frozen dataclasses of core.types and
storage.records; no ORM row leaves. 4. A save with equal content changes nothing, so pages may save at each rerun. 5.
`find_...` may return None, `get_...` raises NotFoundError with the id. 6. Errors are core.errors: InputError (yours to
mend), ConflictError (look at both versions), StorageError (the disk's or the file's).

A Store may be shared by threads; processes each open their own.
"""

from __future__ import annotations

from types import TracebackType

from storage.activity import Activity
from storage.annotations import Annotations
from storage.db import parse_url
from storage.drafts import Drafts
from storage.evaluations import Evaluations
from storage.item_views import ItemViews
from storage.items import Items
from storage.judgments import Judgments
from storage.maintenance import Maintenance
from storage.people import People
from storage.predictions import Predictions
from storage.projects import Projects
from storage.qualifying import Qualifying
from storage.queue import Queue
from storage.reviews import Reviews
from storage.rework import Rework
from storage.submissions import Submissions
from storage.upgrade import ensure_current


class Workbench(People, Activity, Projects, Items, ItemViews, Qualifying, Queue, Rework, Drafts, Submissions, Reviews):
    """The part of the Store for annotation by several people: each method checks who asks (storage.people)."""


class Store(Predictions, Judgments, Annotations, Evaluations, Workbench, Maintenance):
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
