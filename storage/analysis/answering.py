"""Has a system answer a project's items: in the background of the manage page, and in `python -m storage answer`.

The system is given as a function that builds it: nothing of a model is imported here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing

from core import types as t
from core.errors import AmbiscopeError, CancelledError, InputError, NotAllowedError
from core.systems.base.batching import in_order
from core.systems.base.system import answer_or_error
from storage.records.projects import Project, ProjectItem
from storage.store import StoreParts

ITEMS_PER_PAGE = 200
KEPT_ERRORS = 20
# whether the questions bring their own passages -> the system
Build = Callable[[bool], t.AnsweringSystem]
# questions -> (number, prediction or why there is none), in any order
AnswerQuestions = Callable[[Sequence[t.Question]], Generator[tuple[int, t.Prediction | AmbiscopeError], None, None]]


class Answering:
    """One run over the items that have no prediction of the system yet.  Each prediction is stored and linked when it is ready,
    so that annotators get it while the rest is running.

    The attributes may be read while it runs: `total` is None while the items are counted; `failed` holds (question, reason), the first
    20; `linked` also counts what was stored before and fits other items.
    """

    def __init__(
        self,
        store: StoreParts,
        project: Project,
        system: str,
        user: str,
        build: Build,
        limit: int | None = None,
        elsewhere: AnswerQuestions | None = None,
        batch: int = 1,
    ) -> None:
        """`user` is a manager; at most `limit` items are answered, `batch` at a time (core.systems.base.batching).  `elsewhere`: who answers in place of
        this process, such as several machines.  Raises InputError for a system that is not the project's."""
        if system not in project.systems:
            systems = ", ".join(project.systems) or "none"
            raise InputError(
                f"'{system}' is no system of the project {project.name} ({systems}); choose it in its settings first"
            )
        for value, name in ((limit, "limit"), (batch, "batch")):
            if value is not None and value < 1:
                raise InputError(f"the {name} is {value}; it must be at least 1")
        self.project, self.system, self.user = project, system, user
        self.total: int | None = None
        self.answered, self.linked, self.stage = 0, 0, "looking for items without a prediction"
        self.failed: list[tuple[str, str]] = []
        self.failures = 0
        self._store, self._build, self._limit, self._run_id = store, build, limit, uuid.uuid4().hex
        self._batch, self._ask = batch, elsewhere or self._ask_here

    @property
    def part(self) -> float:
        """The share that is finished, in 0..1."""
        return (self.answered + self.failures) / self.total if self.total else 0.0

    def answer_items(self, stopping: Callable[[], bool] = lambda: False, on_item: Callable[[], None] = lambda: None) -> None:
        """Answers all items.  `stopping` is asked before each item, and ends the run with CancelledError; `on_item` is called after each."""
        items = list(self._items(stopping))
        self.total = len(items)
        try:
            with closing(
                self._ask([t.Question(i.question, id=i.source_id, passages=i.passages) for i in items])
            ) as predictions:
                for index in range(self.total):
                    if stopping():
                        raise CancelledError("stopped; the predictions made so far are kept and linked")
                    self.stage = f"question {index + 1} of {self.total}"
                    number, prediction = next(predictions)
                    self._keep(items[number], prediction)
                    on_item()
        finally:  # stored predictions that no item has yet: of the other system, or of before
            self.linked += self._store.intake.link_predictions(self.user, self.project.id)
        self.stage = "done"

    def _items(self, stopping: Callable[[], bool]) -> Iterator[ProjectItem]:
        """Items that have no prediction of this system, in the order of the queue."""
        offset, count = 0, 0
        while True:
            page = self._store.items.items(
                self.project.id, self.user, stage=self.project.stages[0], limit=ITEMS_PER_PAGE, offset=offset
            )
            for summary in page:
                if stopping() or count == self._limit:
                    return
                item = self._store.items.get_item(summary.id, self.user)
                if all(p.system != self.system for p in item.predictions):
                    count += 1
                    yield item
            if len(page) < ITEMS_PER_PAGE:
                return
            offset += ITEMS_PER_PAGE

    def _ask_here(self, questions: Sequence[t.Question]) -> Generator[tuple[int, t.Prediction | AmbiscopeError], None, None]:
        kinds = dict.fromkeys(q.passages is not None for q in questions)
        systems = {brings_passages: self._build(brings_passages) for brings_passages in kinds}  # an error here ends the run
        yield from enumerate(in_order(lambda q: answer_or_error(systems[q.passages is not None], q), questions, self._batch))

    def _keep(self, item: ProjectItem, prediction: t.Prediction | AmbiscopeError) -> None:
        if isinstance(prediction, AmbiscopeError):
            return self._fails(item, prediction)
        key = f"{self._run_id}-{item.id}"
        try:
            self.linked += self._store.intake.save_for_item(self.user, item.id, prediction, key=key)
        except (InputError, NotAllowedError):
            # the system was taken out of the project, or the manager's role was: no use in going on
            self._store.predictions.save_prediction(prediction, key=key)
            raise
        except AmbiscopeError as error:
            return self._fails(item, error)
        self.answered += 1

    def _fails(self, item: ProjectItem, error: AmbiscopeError) -> None:
        self.failures += 1
        if len(self.failed) < KEPT_ERRORS:
            self.failed.append((item.question, str(error)))
