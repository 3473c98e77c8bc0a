"""Long work of every kind in one place: what it is called, where it was started, who may stop it, how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import AmbiscopeError, CancelledError
from pages.jobs.worker import Worker
from pages.session import shared
from pages.ui.formatting import duration
from pages.ui.markup import escape, named
from storage.access.permissions import Name

POLL_SECONDS = 1.0  # seconds


@dataclass(frozen=True)
class Kind:
    what: str
    page: str  # where it is started, a key of PAGES
    action: Name  # who may do this may stop it
    trouble: str  # key of the session under which that page looks for errors


KINDS = {
    "builds": Kind("Index", "corpora", "build corpora", "corpora.error"),
    "evaluations": Kind("Evaluation", "evaluate", "run evaluations", "evaluate.error"),
    "shipped": Kind("Shipped runs", "evaluate", "run evaluations", "evaluate.error"),
    "preannotations": Kind("Suggestions", "manage", "manage projects", "manage.error"),
    "snapshots": Kind("Snapshot", "quality", "take snapshots", "quality.error"),
    "loops": Kind("Training", "quality", "run the loop", "quality.error"),
}


def called(name: str, job: Worker) -> str:
    return job.title or name


def every() -> Iterator[tuple[str, str, Worker]]:
    """(kind, name, job) of all that this process has begun and nobody has closed, running ones first."""
    found = [(kind, name, job) for kind in KINDS for name, job in list(shared.running(kind).items())]
    return iter(sorted(found, key=lambda one: one[2].done))


def going(kind: str) -> dict[str, Worker]:
    """The running ones of a kind, by name."""
    return {name: job for name, job in list(shared.running(kind).items()) if not job.done}


def said(job: Worker) -> str:
    """What it is doing, for how long, and how long it will take."""
    stage = "stopping" if job.stopping else job.stage
    left = f" · about {duration(job.left)} left" if job.left is not None and not job.stopping else ""
    return f"{escape(stage)} · {duration(job.seconds)}{left}"


def show(place: DeltaGenerator, name: str, job: Worker) -> DeltaGenerator:
    return place.progress(min(1.0, job.share or 0.0), text=f"{escape(called(name, job))}: {said(job)}")


def bar(kind: str, name: str, job: Worker) -> DeltaGenerator:
    """Its progress, with a button to stop it for those who may.  Returns what `show` draws anew in the same place."""
    drawn = show(st.container(), name, job)
    if shared.store().may(KINDS[kind].action):
        label = f"Stop {escape(called(name, job))}"
        key = f"{KINDS[kind].page}.stop.{name}"
        st.button(label, key=key, icon=":material/stop_circle:", on_click=stop, args=(kind, name))
    return drawn


def close_button(kind: str, name: str) -> None:
    if shared.store().may(KINDS[kind].action):
        key = f"{KINDS[kind].page}.close.{name}"
        label = named("Dismiss", f"the report on {called(name, shared.running(kind)[name])}")
        st.button(label, key=key, on_click=close, args=(kind, name), icon=":material/close:")


def stop(kind: str, name: str) -> None:
    """Callback: asks the table of permissions itself, as each kind has its own action."""
    try:
        shared.store().allow(KINDS[kind].action)
        if (job := shared.running(kind).get(name)) is not None:
            job.stop()
    except AmbiscopeError as error:
        st.session_state[KINDS[kind].trouble] = error


def close(kind: str, name: str) -> None:
    """Callback: the report of a job that ended is not needed any more."""
    try:
        shared.store().allow(KINDS[kind].action)
        if (job := shared.running(kind).get(name)) is not None and job.done:
            shared.running(kind).pop(name, None)
    except AmbiscopeError as error:
        st.session_state[KINDS[kind].trouble] = error


@st.fragment(run_every=POLL_SECONDS)
def watch(kind: str) -> None:
    """Looks once a second while something of the kind runs; then the whole page is drawn again."""
    found = going(kind)
    for name, job in found.items():
        bar(kind, name, job)
    if not found:
        st.rerun()


def ended(job: Worker) -> bool:
    """Tells of a job that was stopped or failed; False where it did what it was to do."""
    if isinstance(job.error, CancelledError):
        st.info(escape(job.error), icon=":material/stop_circle:")
    elif job.error is not None:
        shared.show_error(job.error)
    return job.error is not None
