"""Ask an ambiguous question, watch the answers arrive, correct and judge them."""

from __future__ import annotations

from collections.abc import Set
from urllib.parse import urlencode

import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.systems.base.system import check_question
from core.types import Prediction
from pages.explore import live, options, pasted
from pages.explore import sides as aligned
from pages.explore.result import draw_result
from pages.explore.runner import QuestionRun
from pages.session import retraining, shared, to_explore
from pages.session.actions import reported
from pages.ui.markup import escape
from storage.access.blindness import BlindError
from storage.records.results import StoredPrediction

STARTER = "starter"
EXAMPLES = (  # of the starter corpus, each ambiguous in a different way
    "When did the N64 come out?",
    "How tall is Godzilla?",
    "Who did the Doctor Who theme tune?",
    "Where does The Office take place?",
    "How many times was Cats performed in its original run?",
)
LINKED_PARAMETERS = ("prediction", "other")  # URL parameters: ids of the predictions on the page
SIDE_LABELS = (", left side", ", right side")  # read aloud after labels that two compared runs share


def ask(text: str | None = None) -> None:
    """Callback: records what to ask.  The run starts when the sidebar's choices are known."""
    state = st.session_state
    if text is not None:
        state["explore.question"] = text
    state["explore.ask"] = state.get("explore.question", "")
    if state.get(to_explore.SWITCH):
        state["explore.ask.pasted"] = str(state.get(to_explore.TEXT) or "")


def opening(corpus: str, empty: bool) -> None:
    """Title, introduction, question and examples; smaller when there is a result.  Always the same number of elements, so that those
    below keep their position."""
    with st.container(key="explore.title" if empty else "explore.title.small"):
        st.header("Explore an ambiguous question", anchor=False)
    introduction = st.empty()
    form = st.form("explore.form", border=False, enter_to_submit=True)
    with form.container(horizontal=True, vertical_alignment="bottom"):
        field, button = st.container(), st.container(width="content")
    # first: Enter has no effect in a form whose button is not drawn yet, and a fast user would wait in vain
    button.form_submit_button("Ask", type="primary", on_click=ask, icon=":material/search:")
    field.text_input(
        "Question",
        key="explore.question",
        placeholder="Who played Maria in West Side Story?",
        label_visibility="visible" if empty else "collapsed",
    )
    with form:
        pasted.box()
    pasted.switch()
    examples = st.empty()
    if empty:
        introduction.markdown(
            "Many questions have several right answers because they can be understood in several ways. Ask one: you see "
            "each answer with its passage and, where one was found, a question that has only that answer."
        )
    if empty and corpus == STARTER:
        with examples.container():
            st.caption("Or try an example:")
            with st.container(horizontal=True):
                for number, example in enumerate(EXAMPLES):
                    st.button(escape(example), key=f"explore.example.{number}", on_click=ask, args=(example,))


def begin(choices: options.Choices) -> bool:
    """Starts the run that a callback asked for, if any.  Raises InputError for a bad question before anything is loaded, NotAllowedError."""
    text, passages = (st.session_state.pop(key, None) for key in ("explore.ask", "explore.ask.pasted"))
    if text is None:
        return False
    if passages is not None:  # the person may have had to sign in again, which keeps texts and no switch
        st.session_state.update({to_explore.SWITCH: True, to_explore.TEXT: passages})
    question = check_question(pasted.question(text), shared.settings().max_question_chars)
    if not choices.sides:
        raise InputError("no system is ready; the sidebar shows what each one needs")
    if not choices.corpus and question.passages is None:
        raise InputError("there is no corpus; upload one on the Corpora page")
    live.start(choices.plans(question))
    return True


def linked() -> list[StoredPrediction]:
    """The predictions that the address names.  Raises NotFoundError, StorageError."""
    ids = [st.query_params.get(name, "") for name in LINKED_PARAMETERS]
    is_new = tuple(ids) != st.session_state.get("explore.link", ("", ""))  # another link was opened in this tab
    if not is_new and live.runs():
        return []
    if is_new:
        st.session_state["explore.link"] = tuple(ids)
        if any(ids):
            live.drop()
    predictions = [shared.store().predictions.get_prediction(i) for i in dict.fromkeys(ids) if i]
    if is_new and predictions:
        st.session_state["explore.question"] = predictions[0].prediction.question.text
        to_explore.put(predictions[0].prediction.question.passages)
        options.restore([p.prediction for p in predictions])
    return predictions


@reported
def _show_judged() -> None:
    for name in LINKED_PARAMETERS:
        if prediction := st.query_params.get(name, ""):
            shared.store().blindness.show_prediction(prediction, shared.annotator())
    st.session_state.pop("explore.link", None)  # read like a link that was just opened


def draw(sides: list[tuple[Prediction | None, str, str]], runs: list[QuestionRun]) -> None:
    """`sides`: prediction, its stored id, prefix of its keys. `runs`: those that ended without being saved, in the same
    order."""
    predictions = [p for p, *_ in sides if p is not None]
    shared_answers: tuple[Set[int], Set[int]] = frozenset(), frozenset()
    if len(predictions) == 2:
        first, second = predictions
        shared_answers = aligned.in_both(first.answers, second.answers)
        aligned.draw(first, second, len(shared_answers[0]))
    ids, is_comparison = [saved for _, saved, _ in sides], len(sides) > 1
    link = urlencode(list(zip(LINKED_PARAMETERS, ids))) if all(ids) else ""
    for number, ((prediction, saved, prefix), column) in enumerate(zip(sides, st.columns(len(sides), gap="medium"))):
        with column:
            if runs:
                live.show_run_error(runs[number])
            if prediction is not None and is_comparison:
                draw_result(prediction, saved, prefix, link, shared_answers[number], SIDE_LABELS[number])
            elif prediction is not None:
                draw_result(prediction, saved, prefix, link)
    if any(ids):
        retraining.button("explore.learn")


def finish(runs: list[QuestionRun]) -> None:
    """After the last event: the address gets the ids of saved predictions; errors stay on the page."""
    for name, run in zip(LINKED_PARAMETERS, runs):
        if run.saved:
            st.query_params[name] = run.saved
    st.session_state["explore.link"] = tuple(st.query_params.get(name, "") for name in LINKED_PARAMETERS)
    if all(run.saved for run in runs):
        st.session_state["explore.runs"] = []
    st.rerun()


def main() -> None:
    shared.warm()
    predictions: list[StoredPrediction] = []
    problem: AmbiscopeError | None = None
    try:
        predictions = linked()
    except AmbiscopeError as error:
        problem = error
    choices = options.sidebar()
    try:
        if begin(choices):
            problem = None
    except AmbiscopeError as error:
        problem = error
    runs = live.runs()
    opening(choices.corpus, empty=not runs and not predictions)
    with st.empty().container():  # replaced as a whole: else parts of an earlier result stay below a run, greyed out
        if problem is not None:
            shared.show_error(problem)
            if isinstance(problem, BlindError) and problem.can_show:
                st.button(
                    "Show it, my work is final", key="explore.blind.show", icon=":material/visibility:", on_click=_show_judged
                )
        elif runs and not all(run.done and (run.saved or run.error or run.save_error) for run in runs):
            live.watch(runs)
            finish(runs)
        elif runs:
            draw([(run.prediction(), run.saved, run.saved or run.key) for run in runs], runs)
            if all(run.saved for run in runs):  # the second attempt at saving worked
                finish(runs)
        elif predictions:
            draw([(p.prediction, p.id, p.id) for p in predictions], [])


main()
