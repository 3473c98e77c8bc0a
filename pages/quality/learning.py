"""The button that starts the training loop, on the pages where people judge."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from core.text import listed
from pages.jobs import background as jobs
from pages.quality import training_loop
from pages.session import shared
from pages.session.actions import action
from pages.ui.markup import escape
from storage.analysis.loop import MIN_ANSWERED, MINUTES, LoopOptions


@action("run the loop")
def begin() -> None:
    """Callback: starts a loop over all judgments."""
    training_loop.start(LoopOptions(out=training_loop.folder(f"{datetime.now(UTC):%Y%m%d-%H%M%S}")))


def draw(key: str) -> None:
    """The button, or the progress or outcome of the loop; only for those who may start one."""
    if not shared.store().may("run the loop") or shared.light_engine().remote_notice:
        return
    run = training_loop.current()
    with st.container(horizontal=True, vertical_alignment="center"):
        if run is not None and not run.done:
            st.caption(f":material/model_training: Learning from the judgments: {jobs.progress_text(run)}", width="content")
            st.page_link("pages/jobs/page.py", label="Open Jobs", icon=":material/pending_actions:")
            return
        count = shared.store().labels.judged_questions()
        st.button(
            "Retrain on my labels",
            key=key,
            icon=":material/model_training:",
            on_click=begin,
            help="Trains the answering model in the background on all judgments: labels, struck and added answers, annotations, "
            f"for {MINUTES:g} minutes. A model that is worse afterwards is discarded.",
        )
        progress = f"{count} of {MIN_ANSWERED} judged questions with a correct answer needed to train"
        st.caption(progress if count < MIN_ANSWERED else listed(count, "judged question"), width="content")
    if run is not None:
        if not jobs.show_failure(run):
            st.info(escape(run.result.words()))
            st.page_link("pages/quality/page.py", label="Open Quality", icon=":material/fact_check:")
        jobs.close_button("loops", "loop", run)
