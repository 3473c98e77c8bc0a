"""Asks again from an answer set: without the answers labelled wrong and with the added ones, about one meaning alone, or for
none of these answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import streamlit as st

from core import types as t
from core.systems.base.system import check_question
from core.text import answer_key, answer_keys
from pages.explore import labels, live
from pages.explore.options import made_with
from pages.explore.runner import Plan
from pages.session import shared
from pages.session.actions import action, reported
from pages.session.systems import MAX_PASSAGES
from pages.ui.markup import escape, full_label
from storage.records.results import Judgment

MAX_CHARS = 200


@dataclasses.dataclass(frozen=True)
class PredictionCorrections:
    """A person's corrections of one prediction: positions of the answers labelled wrong, and the added answers."""

    struck: frozenset[int] = frozenset()
    added: tuple[str, ...] = ()


def corrections_of(prefix: str, judged: Mapping[int, Sequence[Judgment]]) -> PredictionCorrections:
    """`judged`: the labels of the stored prediction, by position."""
    struck = (p for p, judgments in judged.items() if (mine := labels.mine(judgments)) and mine.verdict == "wrong")
    return PredictionCorrections(frozenset(struck), tuple(st.session_state.get(f"{prefix}.added", ())))


def new_answers(prediction: t.Prediction, corrections: PredictionCorrections) -> list[str]:
    """The added answers that the prediction does not have."""
    keys = answer_keys(a.text for a in prediction.answers)
    return [text for text in dict.fromkeys(corrections.added) if answer_key(text) not in keys]


def corrected(question: t.Question, answers: tuple[t.Answer, ...], corrections: PredictionCorrections) -> t.Question:
    """The question to continue with.  Answers before the first struck one and all added ones are pinned; struck ones are
    banned.

    Answers pinned or banned before stay so, unless these corrections say otherwise.
    """
    struck, first = corrections.struck, min(corrections.struck, default=len(answers))
    unstruck = [a.text for i, a in enumerate(answers) if i not in struck and (i < first or a.pinned)]
    pinned = {answer_key(p): p for p in reversed([*unstruck, *corrections.added])}
    candidates = dict.fromkeys([*question.banned, *(answers[p].text for p in sorted(struck))])
    banned = [text for text in candidates if answer_key(text) not in pinned]
    added = tuple(dict.fromkeys([*question.added, *corrections.added]))
    return dataclasses.replace(question, pinned=tuple(reversed(pinned.values())), banned=tuple(banned), added=added)


def _add(prefix: str) -> None:
    text = " ".join(str(st.session_state.pop(f"{prefix}.new", "")).split())
    if text:
        st.session_state[f"{prefix}.added"] = [*st.session_state.get(f"{prefix}.added", ()), text]
        st.session_state[f"{prefix}.adder"] = False  # closed: it would cover the button that continues


@reported
def _undo(prefix: str, saved: str) -> None:
    st.session_state.pop(f"{prefix}.added", None)
    labels.take_back(saved, "wrong")


def adder(prefix: str, side: str) -> None:
    with st.popover(full_label("Add an answer", side), icon=":material/add:", key=f"{prefix}.adder", on_change="rerun"):
        st.text_input("Answer to add", key=f"{prefix}.new", max_chars=MAX_CHARS)
        st.button("Add", key=f"{prefix}.add", on_click=_add, args=(prefix,), type="primary")


def bar(prefix: str, saved: str, prediction: t.Prediction, corrections: PredictionCorrections) -> None:
    """A summary of the corrections and the button that continues; empty if there are none."""
    if corrections == PredictionCorrections():
        return
    question = corrected(prediction.question, prediction.answers, corrections)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        lists = {"keeping": question.pinned, "excluding": question.banned}
        parts = "; ".join(f"{verb} {', '.join(f'**{escape(x)}**' for x in texts)}" for verb, texts in lists.items() if texts)
        st.markdown(f"Continue from step {len(question.pinned) + 1}, {parts}.", width="content")
        st.button(
            "Continue from here",
            key=f"{prefix}.run_on",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_continue,
            args=(_plan(question, prediction.system, corrections),),
            help="Answers that you added are labelled correct, unless you gave them a label.",
        )
        st.button("Undo", key=f"{prefix}.undo", icon=":material/undo:", on_click=_undo, args=(prefix, saved))


def _plan(question: t.Question, info: t.SystemInfo, corrections: PredictionCorrections = PredictionCorrections()) -> Plan:
    """A run of the same system with the same options."""
    return Plan(question, info.name, info.corpus, made_with(info), corrections.added)


@action("ask questions")
def _continue(plan: Plan) -> None:
    live.start([plan])


@action("ask questions")
def ask_instead(prediction: t.Prediction, text: str) -> None:
    """Callback: asks a rewritten question, over the same passages if the question had its own."""
    question = check_question(t.Question(text, passages=prediction.question.passages), shared.settings().max_question_chars)
    st.session_state["explore.question"] = question.text
    live.start([_plan(question, prediction.system)])


def ask_edited(prediction: t.Prediction, key: str) -> None:
    """Callback: asks the edited question.  `key`: the field's."""
    ask_instead(prediction, str(st.session_state.get(key, "")))


@action("ask questions")
def search_further(prediction: t.Prediction) -> None:
    """Callback: reads twice the passages, with the answers banned in addition to earlier ones."""
    plan = _plan(prediction.question, prediction.system)
    size = shared.passages_of(prediction.system.corpus) or MAX_PASSAGES
    options = dataclasses.replace(plan.options, top_k=min(MAX_PASSAGES, size, 2 * plan.options.passages))
    banned = tuple(dict.fromkeys([*prediction.question.banned, *(a.text for a in prediction.answers)]))
    question = dataclasses.replace(prediction.question, banned=banned, pinned=(), added=())
    live.start([dataclasses.replace(plan, question=question, options=options)])
