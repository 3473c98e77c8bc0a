"""Ask an ambiguous question, watch the answers come, correct and judge them."""

from __future__ import annotations

from collections.abc import Set

import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.systems.base.system import check_question
from core.types import Prediction
from pages.explore import corrections, live, options, pasted
from pages.explore import sides as aligned
from pages.explore.result import draw_result
from pages.explore.runner import QuestionRun
from pages.quality import learning
from pages.session import shared
from pages.ui.markup import escape
from storage.records.results import StoredPrediction

STARTER = "starter"
EXAMPLES = (  # of the starter corpus, each ambiguous in another way
    "When did the N64 come out?",
    "How tall is Godzilla?",
    "Who did the Doctor Who theme tune?",
    "Where does The Office take place?",
    "How many times was Cats performed in its original run?",
)
SIDES = (", left side", ", right side")  # read aloud after the names of what two compared runs both have


def ask(text: str | None = None) -> None:
    """Callback: notes what to ask; the run starts when the sidebar's choices are known."""
    if text is not None:
        st.session_state["explore.question"] = text
    st.session_state["explore.ask"] = st.session_state.get("explore.question", "")


def question_box(corpus: str, empty: bool) -> None:
    form = st.form("explore.form", border=False, enter_to_submit=True)
    with form.container(horizontal=True, vertical_alignment="bottom"):
        left, right = st.container(), st.container(width="content")
    # first: Enter does nothing in a form whose button is not there yet, and whoever is quick would wait for nothing
    right.form_submit_button("Ask", type="primary", on_click=ask, icon=":material/search:")
    left.text_input("Question", key="explore.question", placeholder="Who played Maria in West Side Story?")
    with form:
        pasted.box()
    pasted.switch()
    if empty and corpus == STARTER:
        st.caption("Or try an example:")
        with st.container(horizontal=True):
            for number, example in enumerate(EXAMPLES):
                st.button(escape(example), key=f"explore.example.{number}", on_click=ask, args=(example,))


def begin(choices: options.Choices) -> bool:
    """Starts what a callback noted, if anything.  Raises InputError for a bad question before anything is loaded, NotAllowedError."""
    text = st.session_state.pop("explore.ask", None)
    if text is None:
        return False
    question = check_question(pasted.question(text), shared.settings().max_question_chars)
    if not choices.sides:
        raise InputError("no system is ready; the sidebar shows what each one needs")
    if not choices.corpus and question.passages is None:
        raise InputError("there is no corpus; upload one on the Corpora page")
    live.start(choices.plans(question))
    return True


def linked() -> list[StoredPrediction]:
    """The predictions that the address names.  Raises NotFoundError, StorageError."""
    ids = [st.query_params.get(name, "") for name in ("prediction", "other")]
    if tuple(ids) != st.session_state.get("explore.link", ("", "")):  # another link was opened in this tab
        live.drop()
        st.session_state["explore.link"] = tuple(ids)
        stored = [shared.store().predictions.get_prediction(i) for i in ids if i]
        if stored:
            st.session_state["explore.question"] = stored[0].prediction.question.text
            pasted.put(stored[0].prediction.question.passages)
        return stored
    return [] if live.runs() else [shared.store().predictions.get_prediction(i) for i in ids if i]


def draw(sides: list[tuple[Prediction | None, str, str]], runs: list[QuestionRun]) -> None:
    """`sides`: prediction, its stored id, prefix of its keys; `runs` those that ended without being saved, in the same places."""
    predictions = [p for p, *_ in sides if p is not None]
    both: tuple[Set[int], ...] | None = None
    if len(sides) > 1:
        both = (
            aligned.in_both(predictions[0].answers, predictions[1].answers)
            if len(predictions) == 2
            else (frozenset(), frozenset())
        )
    if len(predictions) == 2:
        aligned.draw(*predictions)
    places = st.columns(len(sides), gap="medium") if len(sides) > 1 else [st.container()]
    for number, ((prediction, saved, prefix), place) in enumerate(zip(sides, places)):
        if runs:
            with place:
                live.show_run_error(runs[number])
        if prediction is not None:
            shared_answers = None if both is None else both[number]
            draw_result(place, prediction, saved, prefix, shared_answers, SIDES[number] if len(sides) > 1 else "")
    if stored := [(prediction, saved, prefix) for prediction, saved, prefix in sides if prediction is not None and saved]:
        learning.draw("explore.learn", corrections.learn, (stored,))


def finish(runs: list[QuestionRun]) -> None:
    """After the last event: the address names what was saved; what went wrong stays on the page."""
    for name, run in zip(("prediction", "other"), runs):
        if run.saved:
            st.query_params[name] = run.saved
    st.session_state["explore.link"] = tuple(st.query_params.get(name, "") for name in ("prediction", "other"))
    if all(run.saved for run in runs):
        corrections.learn_after(runs)
        st.session_state["explore.runs"] = []
    st.rerun()


def main() -> None:
    st.header("Explore an ambiguous question")
    st.markdown(
        "Many questions have several right answers because they can be understood in several ways. Ask one: the system finds the "
        "answers one by one, shows the passage behind each, and rewrites the question so that it has only that answer."
    )
    shared.warm()
    stored: list[StoredPrediction] = []
    problem: AmbiscopeError | None = None
    try:
        stored = linked()
    except AmbiscopeError as error:
        problem = error
    choices = options.sidebar()
    try:
        if begin(choices):
            problem = None
    except AmbiscopeError as error:
        problem = error
    runs = live.runs()
    question_box(choices.corpus, empty=not runs and not stored)
    if problem is not None:
        shared.show_error(problem)
    elif runs and not all(run.done and (run.saved or run.error or run.save_error) for run in runs):
        live.watch(runs)
        finish(runs)
    elif runs:
        draw([(run.prediction(), run.saved, run.saved or run.key) for run in runs], runs)
        if all(run.saved for run in runs):  # the second attempt at saving worked
            finish(runs)
    elif stored:
        draw([(s.prediction, s.id, s.id) for s in stored], [])


main()
