"""Long work of every kind in one place: begun, watched, stopped, and what became of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import CancelledError, InputError
from pages.session import shared
from pages.session.actions import reported
from pages.ui.formatting import duration
from pages.ui.markup import escape, named
from storage.access.permissions import Name

POLL_SECONDS = 1.0


class BackgroundJob:
    """Work in a thread of its own that the script thread watches; no Streamlit call is made in it.

    `work` gets the job, publishes in it what the page draws, and returns `result`: `stage` says what is being done, `share` (0..1) how much
    of it is, None while nobody knows.  `error` is set before `done`.  Stopping is a request: the work asks `stopping`, or calls `progress`.
    """

    def __init__(
        self,
        work: Callable[[BackgroundJob], Any],
        title: str,
        stage: str = "starting",
        stopped: str = "stopped",
        about: Any = None,
    ) -> None:
        """`stopped`: what is said of it where somebody stopped it; `about`: what its page keeps of what was asked for."""
        self.title, self.stage, self.stopped, self.about = title, stage, stopped, about
        self.share: float | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self._work = work
        self._stop, self._done = threading.Event(), threading.Event()
        self._begun, self._ended = time.monotonic(), 0.0
        self._first: tuple[float, float] | None = None  # seconds and share when the share was first known

    def start(self) -> Self:
        threading.Thread(target=self._run, daemon=True, name=self.title[:40]).start()
        return self

    def _run(self) -> None:
        try:
            self.result = self._work(self)
        except Exception as error:
            self.error = error
        finally:
            self._ended = time.monotonic()
            self._done.set()

    def progress(self, done: int, total: int, stage: str) -> None:
        """Raises CancelledError once somebody asked to stop."""
        self.share, self.stage = (min(1.0, done / total) if total else None), stage
        self.stop_if_asked()

    def stop_if_asked(self) -> None:
        if self.stopping:
            raise CancelledError(self.stopped)

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """True when the work has ended."""
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

    @property
    def seconds_left(self) -> float | None:
        """At the speed so far; None while nothing can be said.  What an earlier run had done does not count."""
        share, now = self.share, self.seconds
        if self.done or share is None:
            return None
        since, start = self._first = self._first or (now, share)
        gained, took = share - start, now - since
        return took * (1.0 - share) / gained if gained > 0 and took >= 1.0 else None


@dataclass(frozen=True)
class JobKind:
    label: str
    page: str  # where it is started, a key of PAGES
    action: Name  # the person who may do this may start and stop it
    outcome: str  # what is said when it has ended well, with the job's title


KINDS = {
    "builds": JobKind("Index", "corpora", "build corpora", "Built the index {title}"),
    "evaluations": JobKind("Evaluation", "evaluate", "run evaluations", "Finished the evaluation {title}"),
    "shipped": JobKind("Example runs", "evaluate", "run evaluations", "Loaded the example runs that come with Ambiscope"),
    "preannotations": JobKind("Suggestions", "manage", "manage projects", "Stored the answers of {title}"),
    "snapshots": JobKind("Snapshot", "quality", "take snapshots", "Took a snapshot: {title}"),
    "loops": JobKind("Training", "quality", "run the loop", "Finished the training {title}"),
    "papers": JobKind("Paper's table", "papers", "run evaluations", "Finished the runs of {title}"),
}


@st.cache_resource(show_spinner=False)
def jobs_of(kind: str) -> dict[str, BackgroundJob]:
    """What this process has begun and nobody has closed, by name: every tab sees it."""
    return {}


def begin(kind: str, name: str, job: BackgroundJob) -> BackgroundJob:
    """Raises NotAllowedError, and InputError while work of this name goes on.  It goes on when the person who began it leaves."""
    shared.store().allow(KINDS[kind].action)
    check_free(kind, name)
    jobs_of(kind)[name] = job
    return job.start()


def check_free(kind: str, name: str) -> None:
    """Raises InputError while work of this name goes on."""
    if (job := going(kind).get(name)) is not None:
        raise InputError(f"{KINDS[kind].label} '{job.title}' is already running; wait until it is finished, or stop it")


def every() -> Iterator[tuple[str, str, BackgroundJob]]:
    """(kind, name, job), running ones first."""
    jobs = [(kind, name, job) for kind in KINDS for name, job in list(jobs_of(kind).items())]
    return iter(sorted(jobs, key=lambda one: one[2].done))


def going(kind: str) -> dict[str, BackgroundJob]:
    """The running ones of a kind, by name."""
    return {name: job for name, job in list(jobs_of(kind).items()) if not job.done}


def progress_text(job: BackgroundJob) -> str:
    """What it is doing, for how long, and how long it will take."""
    stage = "stopping" if job.stopping else job.stage
    remaining = f" · about {duration(job.seconds_left)} left" if job.seconds_left is not None and not job.stopping else ""
    return f"{escape(stage)} · {duration(job.seconds)}{remaining}"


def show(place: DeltaGenerator, job: BackgroundJob) -> DeltaGenerator:
    return place.progress(job.share or 0.0, text=f"{escape(job.title)}: {progress_text(job)}")


def bar(kind: str, name: str, job: BackgroundJob) -> DeltaGenerator:
    """Its progress, with a button to stop it for those who may.  Returns what `show` draws again in the same place."""
    drawn = show(st.container(), job)
    if shared.store().may(KINDS[kind].action):
        key = f"{KINDS[kind].page}.stop.{name}"
        st.button(f"Stop {escape(job.title)}", key=key, icon=":material/stop_circle:", on_click=stop, args=(kind, name))
    return drawn


def close_button(kind: str, name: str) -> None:
    if shared.store().may(KINDS[kind].action):
        label = named("Dismiss", f"the report on {jobs_of(kind)[name].title}")
        key = f"{KINDS[kind].page}.close.{name}"
        st.button(label, key=key, on_click=close, args=(kind, name), icon=":material/close:")


@reported
def stop(kind: str, name: str) -> None:
    """Callback."""
    shared.store().allow(KINDS[kind].action)
    if (job := jobs_of(kind).get(name)) is not None:
        job.stop()


@reported
def close(kind: str, name: str) -> None:
    """Callback: the report of a job that ended is not needed any more."""
    shared.store().allow(KINDS[kind].action)
    if (job := jobs_of(kind).get(name)) is not None and job.done:
        jobs_of(kind).pop(name, None)


@st.fragment(run_every=POLL_SECONDS)
def watch(kind: str) -> None:
    """Looks once a second while something of the kind runs; then the whole page is drawn again."""
    running = going(kind)
    for name, job in running.items():
        bar(kind, name, job)
    if not running:
        st.rerun()


def ended(job: BackgroundJob) -> bool:
    """Tells of a job that was stopped or failed; False where it did what it was to do."""
    if isinstance(job.error, CancelledError):
        st.info(escape(job.error), icon=":material/stop_circle:")
    elif job.error is not None:
        shared.show_error(job.error)
    return job.error is not None
