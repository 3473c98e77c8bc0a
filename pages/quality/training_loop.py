"""The training loop on the quality page: a run that continues when the browser leaves, its progress and its result."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from core.errors import InputError
from pages.jobs import background as jobs
from pages.session import shared
from pages.session.actions import action
from pages.ui.formatting import format_score
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.analysis.loop import MINUTES, LoopOptions, LoopResult, run_loop
from storage.exchange.filters import Filters

MAX_MINUTES = 24 * 60
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")


def current() -> jobs.BackgroundJob | None:
    """The running loop, or the last one until somebody dismisses its report."""
    return jobs.jobs_of("loops").get("loop")


def start(options: LoopOptions) -> None:
    """Starts a loop in the background; its result is a LoopResult.  Raises NotAllowedError, and InputError while another one runs."""
    shared.store().allow("run the loop")
    if remote_notice := shared.light_engine().remote_notice:
        raise InputError(remote_notice)
    store, settings = shared.servers_store(), shared.settings()

    def work(job: jobs.BackgroundJob) -> LoopResult:
        def progress(stage: str, share: float | None) -> None:
            job.stage, job.share = stage, share
            job.stop_if_asked()

        return run_loop(store, settings, options, progress=progress)

    stopped = "the training loop was stopped; finished work is kept, and starting it under the same name resumes it"
    jobs.begin("loops", "loop", jobs.BackgroundJob(work, options.out.name, stopped=stopped))


def folder(name: str) -> Path:
    """`name`: as it was given, or that of the folder, which its job shows."""
    return shared.settings().runs_dir / f"loop-{name.removeprefix('loop-')}"


@action("run the loop")
def _begin(filters: Filters) -> None:
    """Callback of the form."""
    state = st.session_state
    name = str(state.get("quality.loop.name") or "").strip()
    if not _NAME.fullmatch(name):
        raise InputError(f"'{name[:60]}' is not a valid name; use up to 60 characters of a-z, 0-9, '-' and '_'")
    snapshot = int(state.get("quality.loop.snapshot") or 0) or None
    limit = int(state.get("quality.loop.limit") or 0) or None
    minutes = float(state["quality.loop.minutes"])
    start(LoopOptions(folder(name), snapshot, Filters() if snapshot else filters, minutes=minutes, limit=limit))


def draw(filters: Filters, snapshots: list[int]) -> None:
    st.markdown(
        "Takes a snapshot of people's judgments and annotations, trains the answering model on it, and evaluates the model before and after "
        "on the starter questions that are **not** in the snapshot. It runs in the background, even if you leave this page."
    )
    for run in jobs.reports("loops"):
        result(run.result)
    if jobs.running("loops"):
        return
    if remote_notice := shared.light_engine().remote_notice:
        st.info(escape(remote_notice), icon=":material/dns:")
        return
    with st.form("quality.loop", border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "Name",
                value=f"{datetime.now(UTC):%Y%m%d-%H%M}",
                key="quality.loop.name",
                max_chars=60,
                width=200,
                help="To resume a loop that was stopped, enter its name.",
            )
            st.selectbox(
                "Snapshot",
                [None, *snapshots],
                format_func=lambda n: "Take one now" if n is None else f"Snapshot {n}",
                key="quality.loop.snapshot",
                width=200,
            )
            st.number_input(
                "Training time (minutes)",
                min_value=1,
                max_value=MAX_MINUTES,
                value=int(MINUTES),
                key="quality.loop.minutes",
                width=180,
            )
            st.number_input(
                "Test questions (0 = all)", min_value=0, max_value=100_000, value=0, key="quality.loop.limit", width=180
            )
        st.form_submit_button(
            "Train and evaluate", type="primary", icon=":material/model_training:", on_click=_begin, args=(filters,)
        )


def result(outcome: LoopResult) -> None:
    show = {"better": st.success, "worse": st.warning, "undecided": st.info}[outcome.verdict]
    show(escape(outcome.words()))
    rows = [
        {
            "Metric": d.metric,
            "Before": format_score(d.metric, d.before),
            "After": format_score(d.metric, d.after),
            "Difference": format_score(d.metric, d.difference, "+"),
            "95% interval": " to ".join(format_score(d.metric, end, "+") for end in d.interval or ()),
            "p": "" if d.p_value is None else f"{d.p_value:.3f}",
            "n": d.n,
        }
        for d in outcome.differences
    ]
    table(rows, "Each metric before and after training")
    excluded = f"{outcome.left_out} questions were left out because the model was trained on them. " if outcome.left_out else ""
    st.caption(
        f"Learned from {outcome.trained_on} questions of snapshot {outcome.snapshot}. {excluded}"
        + (
            ""
            if outcome.verdict == "worse"
            else f"To use the new weights, start Ambiscope with AMBISCOPE_ANSWERER={escape(Path(outcome.checkpoint))}."
        )
    )
    st.page_link("pages/evaluate/page.py", label="Compare both runs question by question", icon=":material/query_stats:")
