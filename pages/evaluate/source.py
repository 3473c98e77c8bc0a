"""The runs that the page is about: those of this installation, or the example runs, which are in a separate database."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.trace import prediction_from_json
from core.types import Prediction
from pages.jobs import background as jobs
from pages.session import shared
from pages.session.actions import action, say
from storage.access.visitors import Visitor
from storage.shipped import beside, runs
from storage.store import SessionStore

MINE, SHIPPED = "My runs", "Example runs"  # narrow enough for the sidebar
KEY, NOW = "evaluate.source", "evaluate.source.now"
PREFERENCE, HIDDEN = "shipped runs", "hidden"
KIND = "shipped"
SHORT_SECONDS = 2.0  # the page waits this long before it shows the progress of loading


def _load(file: Path) -> jobs.BackgroundJob:
    """Unpacks the shipped runs into `file`, which exists once all of them are stored."""

    def work(job: jobs.BackgroundJob) -> None:
        def progress(done: int, total: int) -> None:
            job.progress(done, total, f"run {done + 1} of {total}")

        beside.ensure_database(file, lambda store: runs.load(store, progress=progress, traced=False))
        for old in set(file.parent.glob("runs-*.db")) - {file}:  # of another version
            beside.remove_database(old)

    return jobs.BackgroundJob(
        work, "import", stopped="the import of the example runs was stopped; the page imports them at the next visit"
    )


def _file() -> Path:
    return shared.settings().home / "shipped" / f"runs-{runs.digest()}.db"


def _shipped() -> SessionStore:
    """Raises as `shared.store`."""
    shared.store().allow("see evaluations")
    return SessionStore(shared.beside(_file()), lambda: Visitor("reader"))


def current() -> str:
    """MINE or SHIPPED: the source at the last drawing."""
    return str(st.session_state.get(NOW) or MINE)


def store() -> SessionStore:
    return _shipped() if current() == SHIPPED else shared.store()


def trace(run_id: str, question_id: str) -> Prediction | None:
    """A run's prediction for a question with its events; None where it kept no trace.  Raises FormatError."""
    if current() == SHIPPED:
        run = next(r for r in _shipped().evaluations.evaluations(runs.about().runs) if r.id == run_id)
        return runs.trace(run.system, run.questions, question_id)
    body = shared.store().evaluations.find_evaluation_trace(run_id, question_id)
    return None if body is None else prediction_from_json(body)


def is_hidden() -> bool:
    return shared.preference(PREFERENCE) == HIDDEN


@action("see evaluations")
def set_shown(is_shown: bool) -> None:
    """Callback: whether the user sees the shipped runs."""
    shared.set_preference(PREFERENCE, "shown" if is_shown else HIDDEN)
    st.session_state[KEY] = SHIPPED if is_shown else MINE


@action("run evaluations")
def adopt() -> None:
    """Callback: the shipped runs become runs of this installation, like any other."""
    count = runs.load(shared.servers_store())
    st.session_state[KEY] = MINE
    say(f"{count} example runs were copied to the runs of this installation.")


def choose() -> None:
    """Draws the choice in the sidebar; where the installation has no runs, the shipped ones are chosen, once they are loaded."""
    source = SHIPPED
    if is_hidden() or not runs.ARCHIVE.is_file():
        source = MINE
    elif shared.store().evaluations.count_evaluations():
        st.session_state.setdefault(KEY, MINE)
        source = str(st.sidebar.segmented_control("Runs", [MINE, SHIPPED], key=KEY, required=True, persist_state="session"))
    st.session_state[NOW] = SHIPPED if source == SHIPPED and _is_loaded() else MINE


def is_loading() -> bool:
    """Whether the shipped runs are about to be chosen, once they are loaded."""
    return not is_hidden() and "runs" in jobs.jobs_of(KIND)


def _is_loaded() -> bool:
    """Loads the shipped runs at the first visit.  False while they are loading, or where they cannot be loaded; the page shows it."""
    if _file().is_file():
        return True
    loading = jobs.jobs_of(KIND)  # not started as an action: the first visit of anybody loads them
    if (job := loading.get("runs")) is None:
        job = loading["runs"] = _load(_file()).start()
        job.wait(SHORT_SECONDS)
    if not job.done:
        jobs.watch(KIND)
        return False
    loading.pop("runs", None)
    return not jobs.show_failure(job) and _file().is_file()


def describe() -> None:
    """The origin of the shipped runs, where they are chosen."""
    if current() != SHIPPED:
        return
    archive = runs.about()
    extent = f"the first {archive.limit} questions of each file" if archive.limit else "full question files"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Example runs included with Ambiscope (commit {archive.commit[:7]}, {extent}).", width="stretch")
        if shared.store().may("run evaluations"):
            st.button("Copy to my runs", key="evaluate.adopt", on_click=adopt, icon=":material/library_add:")
        st.button("Hide", key="evaluate.hide", on_click=set_shown, args=(False,), icon=":material/visibility_off:")
