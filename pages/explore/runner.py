"""One run of a system in a worker thread: the worker computes and fills a list, and the script thread draws it.

No Streamlit call is made in the worker.  It stops on request, and also when nobody has watched it for a while: the browser
was closed, or shows another page.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core import types as t
from core.engine import Engine
from core.errors import CancelledError
from core.systems.base.options import Options
from core.systems.base.system import queue_note
from core.trace import fold
from pages.session import libraries
from pages.session.background import BackgroundJob

if TYPE_CHECKING:
    from core.serve.remote import RemoteEngine

ABANDONED_SECONDS = 15.0  # a run that nobody has watched for this long is stopped


@dataclass(frozen=True)
class Plan:
    """A run to start.  `added`: the answers that a person has added so far."""

    question: t.Question
    system: str
    corpus: str
    options: Options = field(default_factory=Options)
    added: tuple[str, ...] = ()


class QuestionRun(BackgroundJob):
    """A question in progress.  `events` only grows."""

    def __init__(self, engine: Engine | RemoteEngine, plan: Plan) -> None:
        super().__init__(self._answer, plan.system, "loading the libraries")
        self.plan, self.key = plan, uuid.uuid4().hex  # the key under which the prediction is saved, once
        self.events: list[t.Event] = []
        self.waits = False  # other questions run first
        self.info = t.SystemInfo(plan.system, corpus=plan.corpus)
        self.saved = ""  # id of the stored prediction
        self.save_error: Exception | None = None
        self._engine, self._last_look = engine, time.monotonic()

    # ------------------------------------------------------------ for the script thread

    def look(self) -> None:
        """Tells the worker that somebody is watching."""
        self._last_look = time.monotonic()

    def prediction(self) -> t.Prediction | None:
        """The fold of the events so far; None before the first one."""
        events = tuple(self.events)
        return fold(self.plan.question, self.info, events) if events else None

    # ------------------------------------------------------------ in the worker

    def _cancelled(self) -> bool:
        return self.stopping or time.monotonic() - self._last_look > ABANDONED_SECONDS

    def _build_progress(self, done: int, total: int, stage: str) -> None:
        self.stage = f"building the corpus, {stage}{f' {done / total:.0%}' if total else ''}"
        if self.stopping:
            raise CancelledError("the run was stopped while its corpus was being built; ask again to resume")

    def _answer(self, _: BackgroundJob) -> None:
        if self._engine.needs_libraries:
            libraries.load()
        has_passages = self.plan.question.passages is not None
        if not has_passages:
            self.stage = "opening the corpus"
            self._engine.corpus(self.plan.corpus, self._build_progress)
        self.stage = "loading the model"
        system = self._engine.system(self.plan.system, self.plan.corpus, self.plan.options, self._cancelled, has_passages)
        self.info = system.info
        self.stage = "retrieving passages"
        for event in system.run(self.plan.question):
            self.waits = isinstance(event, t.QuestionQueued) and event.position > 0
            if not isinstance(event, t.QuestionQueued):
                if isinstance(event, t.Finished) and not self.events and self.stopping:
                    raise CancelledError("the question was cancelled before its turn came; ask again")
                self.events.append(event)
            self.stage = _stage(event)


STAGES: dict[type[t.Event], str] = {
    t.QuestionsImagined: "searching for each imagined question",
    t.PassagesRetrieved: "reading the passages",
    t.PassagesPruned: "reading the passages",
    t.QuestionVerified: "reading the passages",
    t.InterpretationProposed: "reading the passages",
    t.InterpretationsClustered: "rewriting the interpretations",
    t.QuestionClarified: "rewriting the questions",
    t.Finished: "done",
}


def _stage(event: t.Event) -> str:
    """The stage of a run after an event."""
    match event:
        case t.QuestionQueued(position=0, part=part):
            return "looking for answers" if part == "answers" else "rewriting the questions"
        case t.QuestionQueued():
            return queue_note(event)
        case t.StepStarted(number=number):
            return f"looking for answer {number}"
        case t.StepFinished(answer=None):
            return "rewriting the questions"
        case _:
            return STAGES.get(type(event), "working")
