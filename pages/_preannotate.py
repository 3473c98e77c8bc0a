"""A project's items answered by a system in the background, so that annotators get suggestions, or judges something to judge."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from core import types as t
from core.engine import Engine
from core.errors import AmbiscopeError, CancelledError
from core.systems.base import Options, answer
from pages._worker import Worker
from storage import Store
from storage.records_annotation import Item, Project

PAGE = 200
LINK_EVERY = 10  # items after which predictions are linked: annotators get them while the rest is still running
KEPT_ERRORS = 20


class Preannotation(Worker):
    """`total` is None while the items are counted; `failed` holds (question, reason), the first 20."""

    def __init__(self, engine: Engine, store: Store, project: Project, system: str, by: str, options: Options) -> None:
        super().__init__(f"preannotate-{project.id[:8]}")
        self.project, self.system, self.by = project, system, by
        self.total: int | None = None
        self.answered, self.linked, self.stage = 0, 0, "looking for items without a prediction"
        self.failed: list[tuple[str, str]] = []
        self.failures = 0
        self._engine, self._store, self._options, self._prefix = engine, store, options, uuid.uuid4().hex
        self.start()

    @property
    def share(self) -> float:
        return (self.answered + self.failures) / self.total if self.total else 0.0

    def _items(self) -> Iterator[Item]:
        """Items that have no prediction of this system, in the order of the queue."""
        offset = 0
        while True:
            page = self._store.items(self.project.id, self.by, stage=self.project.stages[0], limit=PAGE, offset=offset)
            for summary in page:
                if self.stopping:
                    return
                item = self._store.get_item(summary.id, self.by)
                if all(p.system != self.system for p in item.predictions):
                    yield item
            if len(page) < PAGE:
                return
            offset += PAGE

    def work(self) -> None:
        wanted = list(self._items())
        self.total = len(wanted)
        systems: dict[bool, t.AnsweringSystem] = {}
        try:
            for number, item in enumerate(wanted):
                if self.stopping:
                    raise CancelledError("stopped; the predictions made so far are kept and linked")
                self.stage = f"question {number + 1} of {self.total}"
                self._one(item, systems)
                if (number + 1) % LINK_EVERY == 0:
                    self._link()
        finally:
            self._link()
        self.stage = "done"

    def _one(self, item: Item, systems: dict[bool, t.AnsweringSystem]) -> None:
        own = item.passages is not None
        if own not in systems:  # building one loads its model: an error here ends the run
            systems[own] = self._engine.system(
                self.system, self.project.corpus or None, self._options, lambda: self.stopping, own_passages=own
            )
        stored = self._store.find_question(item.question_id)
        try:
            question = t.Question(item.question, id=stored.source_id if stored else "", passages=item.passages)
            prediction = answer(systems[own], question)
            self._store.save_prediction(prediction, key=f"{self._prefix}-{item.id}")
            self.answered += 1
        except CancelledError:
            raise
        except AmbiscopeError as error:
            self.failures += 1
            if len(self.failed) < KEPT_ERRORS:
                self.failed.append((item.question, str(error)))

    def _link(self) -> None:
        self.linked += self._store.link_predictions(self.by, self.project.id)
