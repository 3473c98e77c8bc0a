"""*Retrain on my labels*, on the pages where people judge and on Quality: one background job at a time, with its progress and its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from core.errors import InputError
from core.text import listed
from pages.session import background as jobs
from pages.session import shared
from pages.session.actions import action
from pages.ui.markup import escape
from storage.analysis.retraining import MIN_ANSWERED, TRAINING_MINUTES, Retrained, retrain
from storage.exchange.filters import Filters

MAX_MINUTES = 24 * 60


@dataclass(frozen=True)
class RetrainingRequest:
    """With `snapshot` None, one is taken of the contributions that pass `filters`."""

    snapshot: int | None = None
    filters: Filters = Filters()  # noqa: RUF009  frozen
    minutes: float = TRAINING_MINUTES


def start(request: RetrainingRequest) -> None:
    """Starts a retraining, or resumes a snapshot's.  Raises NotAllowedError, and InputError while another one runs."""
    shared.store().allow("retrain")
    if remote_notice := shared.light_engine().remote_notice:
        raise InputError(remote_notice)
    store, settings = shared.servers_store(), shared.settings()

    def work(job: jobs.BackgroundJob) -> Retrained:
        def progress(stage: str, share: float | None) -> None:
            job.stage, job.share = stage, share
            job.stop_if_asked()

        number = request.snapshot
        if number is None:
            progress("taking a snapshot", None)
            number = store.exports.take_snapshot(
                settings.home / "snapshots", filters=request.filters, note="for training"
            ).number
            job.subject = replace(request, snapshot=number)  # to resume with
        return retrain(store, settings, number, request.minutes, progress)

    title = f"snapshot {request.snapshot}" if request.snapshot else "a new snapshot"
    stopped = "the training was stopped; what is finished is kept, and you can resume it"
    jobs.begin("trainings", "training", jobs.BackgroundJob(work, title, stopped=stopped, subject=request))


# ---------------------------------------------------------------- where people judge


@action("retrain")
def _begin() -> None:
    start(RetrainingRequest())


def button(key: str) -> None:
    """The button, or the progress or outcome of the training; only for those who may start one."""
    if not shared.store().may("retrain") or shared.light_engine().remote_notice:
        return
    job = jobs.jobs_of("trainings").get("training")
    with st.container(horizontal=True, vertical_alignment="center"):
        if job is not None and not job.done:
            st.caption(f":material/model_training: Learning from the judgments: {jobs.progress_text(job)}", width="content")
            st.page_link("pages/jobs/page.py", label="Open Jobs", icon=":material/pending_actions:")
            return
        labels = shared.store().labels
        count = labels.answered_questions(MIN_ANSWERED)
        st.button(
            "Retrain on my labels",
            key=key,
            icon=":material/model_training:",
            on_click=_begin,
            help="Trains the answering model in the background on all judgments: labels, struck and added answers, annotations, "
            f"for {TRAINING_MINUTES:g} minutes. A model that is worse afterwards is discarded.",
        )
        progress = f"{count} of {MIN_ANSWERED} questions with a correct answer, which a training needs"
        st.caption(progress if count < MIN_ANSWERED else listed(labels.judged_questions(), "judged question"), width="content")
    if job is not None:
        if not jobs.show_failure(job):
            st.info(escape(job.result.words()))
        st.page_link("pages/quality/page.py", label="Open Quality", icon=":material/fact_check:")  # also to resume
        jobs.close_button("trainings", "training", job)


# ---------------------------------------------------------------- on Quality


@action("retrain")
def _begin_form(filters: Filters) -> None:
    state = st.session_state
    start(RetrainingRequest(state.get("quality.retraining.snapshot"), filters, float(state["quality.retraining.minutes"])))


@action("retrain")
def _resume(name: str) -> None:
    if (job := jobs.jobs_of("trainings").get(name)) is not None:
        start(job.subject)


def draw(filters: Filters, snapshots: list[int]) -> None:
    st.markdown(
        "Takes a snapshot of people's judgments and annotations, trains the answering model on it, and evaluates the model before and after "
        "on the starter questions that are **not** in the snapshot. It runs in the background, even if you leave this page. "
        "To resume one that was interrupted, choose its snapshot and training time again."
    )
    for job in jobs.reports("trainings", _resume):
        result(job.result)
    if jobs.running("trainings"):
        return
    if remote_notice := shared.light_engine().remote_notice:
        st.info(escape(remote_notice), icon=":material/dns:")
        return
    with st.form("quality.retraining", border=True):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.selectbox(
                "Snapshot",
                [None, *snapshots],
                format_func=lambda n: "Take one now" if n is None else f"Snapshot {n}",
                key="quality.retraining.snapshot",
                width=200,
            )
            st.number_input(
                "Training time (minutes)",
                min_value=1,
                max_value=MAX_MINUTES,
                value=int(TRAINING_MINUTES),
                key="quality.retraining.minutes",
                persist_state="session",  # the form is not drawn while a training runs
                width=180,
            )
        st.form_submit_button(
            "Train and evaluate", type="primary", icon=":material/model_training:", on_click=_begin_form, args=(filters,)
        )


def result(outcome: Retrained) -> None:
    show = {"better": st.success, "worse": st.warning, "undecided": st.info}[outcome.verdict]
    show(escape(outcome.words()))
    use = f" To use the new weights, start Ambiscope with AMBISCOPE_ANSWERER={escape(Path(outcome.checkpoint))}."
    learned = f"Learned from {outcome.questions} questions of snapshot {outcome.snapshot}."
    st.caption(learned + ("" if outcome.verdict == "worse" else use))
    st.page_link("pages/evaluate/page.py", label="Compare both runs question by question", icon=":material/query_stats:")
