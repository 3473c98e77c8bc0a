"""The source of the runs on a page: this installation's own, or the example runs, which are in a separate database."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import streamlit as st

from core.errors import CancelledError, StorageError
from core.models.loading.finding import BUNDLED
from core.settings import ROOT
from core.trace import prediction_from_json
from core.types import Prediction
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action, say
from storage.access.sign_ins import Visitor
from storage.shipped import runs
from storage.store import SessionStore

MINE, SHIPPED = "My runs", "Example runs"  # narrow enough for the sidebar
SOURCE_KEY, SOURCE_NOW_KEY = "evaluate.source", "evaluate.source.now"
PREFERENCE, HIDDEN = "shipped runs", "hidden"
KIND = "shipped"
UNPACK_COMMAND = (sys.executable, "-m", "storage.shipped")
SHORT_SECONDS = 2.0  # the page waits this long before it shows the progress of loading


def _load(file: Path) -> jobs.BackgroundJob:
    """Unpacks the shipped runs into `file`, which exists once all of them are stored."""

    def work(job: jobs.BackgroundJob) -> None:
        with subprocess.Popen([*UNPACK_COMMAND, str(file)], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                if job.stopping:
                    process.kill()
                    raise CancelledError(job.stopped)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(jobs.POLL_SECONDS)
            if process.returncode:
                lines = (process.stderr.read() if process.stderr else "").strip().splitlines()
                raise StorageError(f"the example runs cannot be shown: {lines[-1] if lines else 'their import ended early'}")

    return jobs.BackgroundJob(
        work,
        "Example runs",
        "unpacking, once",
        stopped="the import of the example runs was stopped; the page imports them at the next visit",
    )


def _file() -> Path:
    return shared.settings().home / "shipped" / f"runs-{runs.digest()}.db"


def _shipped() -> SessionStore:
    """Raises as `shared.store`."""
    shared.store().allow("see evaluations")
    return SessionStore(shared.beside(_file()), lambda: Visitor("reader"))


def current() -> str:
    """MINE or SHIPPED: the source at the last drawing."""
    return str(st.session_state.get(SOURCE_NOW_KEY) or MINE)


def store() -> SessionStore:
    return _shipped() if current() == SHIPPED else shared.store()


def trace(run_id: str, question_id: str) -> Prediction | None:
    """A run's prediction for a question with its events; None if it kept no trace.  Raises FormatError."""
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
    st.session_state[SOURCE_KEY] = SHIPPED if is_shown else MINE


@action("run evaluations")
def adopt() -> None:
    """Callback: copies the shipped runs into this installation, where they are runs like any other."""
    count = runs.load(shared.servers_store())
    st.session_state[SOURCE_KEY] = MINE
    say(f"{count} example runs were copied to the runs of this installation.")


def choose() -> None:
    """Draws the choice in the sidebar.  If the installation has no runs, the shipped ones are chosen once they are loaded."""
    source = SHIPPED
    if is_hidden() or not runs.ARCHIVE.is_file():
        source = MINE
    elif shared.store().evaluations.count_evaluations():
        st.session_state.setdefault(SOURCE_KEY, MINE)
        source = str(
            st.sidebar.segmented_control("Runs", [MINE, SHIPPED], key=SOURCE_KEY, required=True, persist_state="session")
        )
    st.session_state[SOURCE_NOW_KEY] = SHIPPED if source == SHIPPED and _is_loaded() else MINE


def prepare() -> None:
    """Starts loading the shipped runs, unless they are loaded.  The server does so when it starts, so that no visit waits for
    them."""
    if runs.ARCHIVE.is_file() and not _file().is_file():
        _loading()


def _loading() -> jobs.BackgroundJob:
    started = jobs.jobs_of(KIND)  # not started as an action: the first visit of anybody loads them
    if "runs" not in started:
        started["runs"] = _load(_file()).start()
    return started["runs"]


def is_loading() -> bool:
    """Whether the shipped runs are still loading and will be chosen then."""
    return not is_hidden() and "runs" in jobs.running(KIND)


def _is_loaded() -> bool:
    """Loads the shipped runs if the server hasn't.  False while they are loading, or if they can't be loaded, which the page
    shows."""
    if _file().is_file():
        return True
    job = _loading()
    if not job.wait(SHORT_SECONDS):
        jobs.watch(KIND)
        return False
    jobs.jobs_of(KIND).pop("runs", None)
    return not jobs.show_failure(job) and _file().is_file()


def describe() -> None:
    """The origin of the shipped runs, if they are chosen."""
    if current() != SHIPPED:
        return
    archive = runs.about()
    extent = f"the first {archive.limit} questions of each file" if archive.limit else "full question files"
    if newer := sorted({path.parent.name for path in BUNDLED.glob("*/config.json")} - archive.weights.keys()):
        extent += f"; older than the weights of {', '.join(newer)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Example runs included with Ambiscope ({extent}). Each names its commit.", width="stretch")
        if shared.store().may("run evaluations"):
            st.button("Copy to my runs", key="evaluate.adopt", on_click=adopt, icon=":material/library_add:")
        st.button("Hide", key="evaluate.hide", on_click=set_shown, args=(False,), icon=":material/visibility_off:")
