"""Runs in progress: start them, draw them event by event, stop and save them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import types as t
from core.text import answer_key
from pages.explore import labels
from pages.explore.rows import row
from pages.explore.runner import Plan, QuestionRun
from pages.session import background as jobs
from pages.session import shared, sign_in
from pages.ui.markup import escape
from pages.ui.trace import TraceView

POLL_SECONDS = 0.15  # between two looks at a worker
QUIET_SECONDS = 15.0  # without an event, after which the page says that the machine may be busy
STATE_SECONDS = 0.6  # between two drawings of the state without events: drawing takes time from the models


def runs() -> list[QuestionRun]:
    """The runs of this browser tab that are in progress, or could not be saved."""
    return list(st.session_state.get("explore.runs", ()))


def drop() -> None:
    stop()
    st.session_state["explore.runs"] = []


def start(plans: Sequence[Plan]) -> None:
    """Starts a run.  Raises NotAllowedError."""
    shared.store().allow("ask questions")
    drop()
    st.query_params.from_dict({k: v for k, v in st.query_params.items() if k == sign_in.ADDRESS})
    st.session_state["explore.link"] = ("", "")
    engine = shared.light_engine()
    st.session_state["explore.runs"] = [QuestionRun(engine, plan).start() for plan in plans]


def stop() -> None:
    for run in runs():
        run.stop()


def save(run: QuestionRun) -> None:
    """Stores a finished run once, and keeps the error if the store refuses."""
    prediction = run.prediction()
    if run.saved or run.error is not None or prediction is None:
        return
    try:
        run.saved, run.save_error = shared.store().predictions.save_prediction(prediction, key=run.key), None
    except Exception as error:
        run.save_error = error
        return
    added = {answer_key(text) for text in run.plan.added}
    labels.label_added(run.saved, [i for i, a in enumerate(prediction.answers) if answer_key(a.text) in added])


class _Side:
    """One run on the page: its state, the answers so far, the trace."""

    def __init__(self, run: QuestionRun, place: DeltaGenerator) -> None:
        self.run = run
        self.state = place.empty()
        self.rows = place.container(key=f"answers.live.{run.key}").empty()
        self.view = TraceView(place.container(gap="xxsmall"), run.plan.question.text, run.plan.system)
        self.drawn = 0  # events
        self.state_time = 0.0  # of the last drawing of the state
        self.progress = "", 0, time.monotonic()  # stage, number of events, and the time of their last change

    def _hint(self) -> str:
        """A hint that Stop cancels, for a person who waits for other questions or longer than usual."""
        stage, events = self.run.stage, len(self.run.events)
        if self.progress[:2] != (stage, events):
            self.progress = stage, events, time.monotonic()
        if self.run.done or self.run.stopping:
            return ""
        if self.run.waits:
            return "  \n:gray[**Stop** cancels it.]"
        quiet = time.monotonic() - self.progress[2]
        if quiet < QUIET_SECONDS:
            return ""
        return f"  \n:gray[Nothing new for {quiet:.0f} s: the machine may be busy. **Stop** cancels the question.]"

    def draw(self) -> None:
        """Draws new events.  Its Streamlit calls are also where a rerun or a closed tab interrupts the script."""
        events = self.run.events[self.drawn :]
        if events or time.monotonic() - self.state_time >= STATE_SECONDS:
            stage = "stopping after this step" if self.run.stopping and not self.run.done else self.run.stage
            icon = "pending" if self.run.waits else "hourglass_top"
            title = escape(self.run.plan.system)
            self.state.markdown(f":material/{icon}: **{title}**: {escape(stage)} · {self.run.seconds:.1f} s{self._hint()}")
            self.state_time = time.monotonic()
        if any(isinstance(e, (t.StepFinished, t.AnswerRejected, t.QuestionClarified)) for e in events):
            prediction = self.run.prediction()
            if prediction is not None:
                self.rows.markdown("\n\n".join(row(prediction, a) for a in prediction.answers))  # in the order of the steps
        self.view.is_calibrated = self.run.info.is_calibrated
        for event in events:
            self.view.add(event)
        self.drawn += len(events)


def watch(running: Sequence[QuestionRun]) -> None:
    """Draws runs until all of them have ended and all events are drawn, then saves them."""
    st.button("Stop", on_click=stop, icon=":material/stop_circle:", type="primary", key="explore.stop")
    sides = [_Side(run, column) for run, column in zip(running, st.columns(len(running), gap="medium"))]
    while True:
        all_done = all(run.done for run in running)  # before drawing, so that the last events are not missed
        for side in sides:
            side.run.look()
            side.draw()
        if all_done:
            break
        next(run for run in running if not run.done or run is running[-1]).wait(POLL_SECONDS)
    for run in running:
        save(run)


def show_run_error(run: QuestionRun) -> None:
    jobs.show_failure(run)
    if run.save_error is not None:
        shared.show_error(run.save_error)
        st.warning("The result below is not saved. It stays here until you ask another question or open another result.")
        st.button("Try to save again", key=f"again.{run.key}", on_click=save, args=(run,), icon=":material/save:")
