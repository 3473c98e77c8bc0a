"""Background jobs of every kind: start, watch and stop them, and report their outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import streamlit as st

from core.errors import CancelledError, InputError
from pages.session import shared
from pages.session.actions import reported
from pages.ui.formatting import duration
from pages.ui.markup import escape, full_label
from storage.access.permissions import Name

POLL_SECONDS = 1.0


class BackgroundJob:
    """Work in a separate thread that the script thread watches.  It makes no Streamlit calls.

    `work` gets the job, sets in it what the page draws, and returns `result`: `stage` is what it is doing, `share` (0..1) how much
    is finished, None while unknown.  `error` is set before `done`.  Stopping is a request: the work reads `stopping`, or calls `progress`.
    """

    def __init__(
        self,
        work: Callable[[BackgroundJob], Any],
        title: str,
        stage: str = "starting",
        stopped: str = "stopped",
        subject: Any = None,
    ) -> None:
        """`stopped`: the message after somebody stopped it.  `subject`: the facts about the request that its page needs."""
        self.title, self.stage, self.stopped, self.subject = title, stage, stopped, subject
        self.share: float | None = None
        self.result: Any = None
        self.error: Exception | None = None
        self._work = work
        self._stop, self._done = threading.Event(), threading.Event()
        self._start_time, self._end_time = time.monotonic(), 0.0
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
            self._end_time = time.monotonic()
            self._done.set()

    def progress(self, done: int, total: int, stage: str) -> None:
        """Records progress.  Raises CancelledError once somebody asked to stop."""
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
        return (self._end_time or time.monotonic()) - self._start_time

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at the speed so far; None while they can't be estimated. Work of an earlier run doesn't
        count."""
        share, now = self.share, self.seconds
        if self.done or share is None:
            return None
        first_seconds, first_share = self._first = self._first or (now, share)
        gain, elapsed = share - first_share, now - first_seconds
        return elapsed * (1.0 - share) / gain if gain > 0 and elapsed >= 1.0 else None


@dataclass(frozen=True)
class JobKind:
    label: str
    page: str  # where it is started, a key of PAGES
    action: Name  # those who may do this may start and stop it
    outcome: str  # message after success, with the job's title


KINDS = {
    "builds": JobKind("Index", "corpora", "build corpora", "Built the index {title}"),
    "evaluations": JobKind("Evaluation", "evaluate", "run evaluations", "Finished the evaluation {title}"),
    "shipped": JobKind("Example runs", "evaluate", "run evaluations", "Loaded the example runs that come with Ambiscope"),
    "preannotations": JobKind("Suggestions", "manage", "manage projects", "Stored the answers of {title}"),
    "snapshots": JobKind("Snapshot", "quality", "take snapshots", "Took a snapshot: {title}"),
    "trainings": JobKind("Training", "quality", "retrain", "Finished the training on {title}"),
    "papers": JobKind("Paper's table", "papers", "run evaluations", "Finished the runs of {title}"),
}


@st.cache_resource(show_spinner=False)
def jobs_of(kind: str) -> dict[str, BackgroundJob]:
    """The jobs of this process that nobody has dismissed, by name: shared by all tabs."""
    return {}


def begin(kind: str, name: str, job: BackgroundJob) -> BackgroundJob:
    """Starts a job, which continues after the person leaves.  Raises NotAllowedError, and InputError while one of this name
    runs."""
    shared.store().allow(KINDS[kind].action)
    check_free(kind, name)
    jobs_of(kind)[name] = job
    return job.start()


def check_free(kind: str, name: str) -> None:
    """Raises InputError while a job of this name runs."""
    if (job := running(kind).get(name)) is not None:
        raise InputError(f"{KINDS[kind].label} '{job.title}' is already running; wait until it is finished, or stop it")


def all_jobs() -> list[tuple[str, str, BackgroundJob]]:
    """(kind, name, job), running ones first."""
    jobs = [(kind, name, job) for kind in KINDS for name, job in list(jobs_of(kind).items())]
    return sorted(jobs, key=lambda entry: entry[2].done)


def running(kind: str) -> dict[str, BackgroundJob]:
    """The running jobs of a kind, by name."""
    return {name: job for name, job in list(jobs_of(kind).items()) if not job.done}


def progress_text(job: BackgroundJob) -> str:
    """The job's current stage, the time so far, and the estimated remaining time."""
    stage = "stopping" if job.stopping else job.stage
    seconds = job.seconds_left  # the job may end meanwhile
    remaining = f" · about {duration(seconds)} left" if seconds is not None and not job.stopping else ""
    return f"{escape(stage)} · {duration(job.seconds)}{remaining}"


def bar(kind: str, name: str, job: BackgroundJob) -> None:
    """The job's progress, with a button to stop it for those who may."""
    st.progress(job.share or 0.0, text=f"{escape(job.title)}: {progress_text(job)}")
    if shared.store().may(KINDS[kind].action):
        key = f"{KINDS[kind].page}.stop.{name}"
        st.button(f"Stop {escape(job.title)}", key=key, icon=":material/stop_circle:", on_click=stop, args=(kind, name))


def close_button(kind: str, name: str, job: BackgroundJob) -> None:
    if shared.store().may(KINDS[kind].action):
        label = full_label("Dismiss", f"the report on {job.title}")
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
    """Callback: dismisses the report of a job that has ended."""
    shared.store().allow(KINDS[kind].action)
    if (job := jobs_of(kind).get(name)) is not None and job.done:
        jobs_of(kind).pop(name, None)


@st.fragment(run_every=POLL_SECONDS)
def watch(kind: str) -> None:
    """Redraws the running jobs of the kind once a second, and the whole page when none is left."""
    jobs = running(kind)
    for name, job in jobs.items():
        bar(kind, name, job)
    if not jobs:
        st.rerun()


def reports(kind: str, resume: Callable[[str], None] | None = None) -> Iterator[BackgroundJob]:
    """Draws the running jobs of a kind, and for failed ones the error with a button to dismiss it.  Yields those that
    succeeded, for the page's own report.  `resume`: a callback that gets the name of a job to continue."""
    if running(kind):
        watch(kind)
    for name, job in [(name, job) for name, job in list(jobs_of(kind).items()) if job.done]:
        if not show_failure(job):
            yield job
        with st.container(horizontal=True):
            if resume is not None and job.error is not None and shared.store().may(KINDS[kind].action):
                label, key = full_label("Resume", job.title), f"{KINDS[kind].page}.again.{name}"
                st.button(label, key=key, on_click=resume, args=(name,), icon=":material/play_arrow:")
            close_button(kind, name, job)


def show_failure(job: BackgroundJob) -> bool:
    """The message of a job that was stopped or failed; False if it succeeded."""
    if isinstance(job.error, CancelledError):
        st.info(escape(job.error), icon=":material/stop_circle:")
    elif job.error is not None:
        shared.show_error(job.error)
    return job.error is not None
