"""One run of a system in a worker thread: the worker computes and fills a list, the script thread draws it.

No Streamlit call is made in the worker.  It stops when it is told to, and also when nobody has looked for a while: the browser
was closed, or shows another page.
"""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field

from core import types as t
from core.engine import Engine
from core.errors import CancelledError
from core.systems.base import Options
from core.trace import fold

LEFT_AFTER = 15.0  # seconds without a look after which a run counts as abandoned


@dataclass(frozen=True)
class Plan:
    """What to run."""

    question: t.Question
    system: str
    corpus: str
    options: Options = field(default_factory=Options)


class Run:
    """A run that has begun.  `events` only grows; `stage` says what it is doing; `error` is set before `done`."""

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self.plan, self.key = plan, uuid.uuid4().hex  # the key under which the prediction is saved, once
        self.events: list[t.Event] = []
        self.info = t.SystemInfo(plan.system, corpus=plan.corpus)
        self.stage, self.error = "opening the corpus", None
        self.saved = ""  # id of the stored prediction
        self.save_error: Exception | None = None
        self._engine, self._done, self._stop = engine, threading.Event(), threading.Event()
        self._begun = self._looked = time.monotonic()
        self._ended: float | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name=f"run-{self.key[:8]}")
        self._thread.start()

    error: Exception | None

    # ------------------------------------------------------------ for the script thread

    def look(self) -> None:
        """Tells the worker that somebody is watching."""
        self._looked = time.monotonic()

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """True when the run has ended."""
        return self._done.wait(seconds)

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def seconds(self) -> float:
        return (self._ended or time.monotonic()) - self._begun

    def prediction(self) -> t.Prediction | None:
        """The fold of the events so far; None before the first one."""
        events = tuple(self.events)
        return fold(self.plan.question, self.info, events) if events else None

    # ------------------------------------------------------------ in the worker

    def _cancelled(self) -> bool:
        return self._stop.is_set() or time.monotonic() - self._looked > LEFT_AFTER

    def _progress(self, done: int, total: int, stage: str) -> None:
        share = f" {done / total:.0%}" if total else ""
        self.stage = f"building the corpus, {stage}{share}"
        if self._stop.is_set():
            raise CancelledError("the run was stopped while its corpus was being built; ask again to go on with it")

    def _work(self) -> None:
        try:
            self._engine.corpus(self.plan.corpus, self._progress)
            self.stage = "loading the model"
            system = self._engine.system(self.plan.system, self.plan.corpus, self.plan.options, self._cancelled)
            self.info = system.info
            self.stage = "retrieving passages"
            for event in system.run(self.plan.question):
                self.events.append(event)
                self.stage = _stage(event)
        except Exception as error:
            self.error = error
        finally:
            self._ended = time.monotonic()
            self._done.set()


def _stage(event: t.Event) -> str:
    match event:
        case t.PassagesRetrieved():
            return "reading the passages"
        case t.StepStarted(number=number):
            return f"looking for answer {number}"
        case t.StepFinished(answer=None) | t.QuestionClarified():
            return "clarifying the questions"
        case t.Finished():
            return "done"
        case _:
            return "working"
