"""Running on from an answer set that a person corrected: without the answers labelled wrong, with those added."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import streamlit as st

from core import types as t
from core.systems.base.options import Options
from core.text import answer_key
from pages.explore import labels, live
from pages.explore.runner import Plan, QuestionRun
from pages.quality import learning
from pages.session import shared
from pages.session.actions import action, reported
from pages.ui.markup import escape, named
from storage.records.results import Judgment

MAX_CHARS = 200
LEARN = "explore.learn.after"  # in the session: keys of the runs after which the loop begins


@dataclasses.dataclass(frozen=True)
class Corrections:
    """Of one prediction: positions that this person labelled wrong, and texts added after a position (from 0)."""

    struck: frozenset[int] = frozenset()
    added: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.struck or self.added)

    @property
    def first(self) -> int:
        """Position from which on the set is found again."""
        return min([*self.struck, *(p + 1 for p in self.added)])


def _added(prefix: str) -> dict[int, str]:
    texts: dict[int, str] = st.session_state.setdefault(f"{prefix}.added", {})
    return texts


def corrections_of(prefix: str, judged: Mapping[int, Sequence[Judgment]]) -> Corrections:
    """`judged`: the labels of the stored prediction, by position."""
    mine = shared.annotator()
    struck = (p for p, all_of in judged.items() if any(j.annotator == mine and j.verdict == "wrong" for j in all_of))
    return Corrections(frozenset(struck), _added(prefix))


def corrected(question: t.Question, answers: tuple[t.Answer, ...], corrections: Corrections) -> t.Question:
    """The question to run on with: pinned are the answers before the first change, and every added one; banned the struck ones.

    What a person had pinned or banned before stays so, unless they now say otherwise.
    """
    pinned: list[str] = []
    for position, answer in enumerate(answers):
        if position not in corrections.struck and (position < corrections.first or answer.pinned):
            pinned.append(answer.text)
        if position in corrections.added:
            pinned.append(corrections.added[position])
    pinned += [text for position, text in sorted(corrections.added.items()) if position >= len(answers) or position < 0]
    struck = [answers[p].text for p in sorted(corrections.struck)]
    keep = {answer_key(p) for p in pinned}
    banned = [b for b in dict.fromkeys([*question.banned, *struck]) if answer_key(b) not in keep]
    unique = {answer_key(p): p for p in reversed(pinned)}
    return dataclasses.replace(question, pinned=tuple(reversed(unique.values())), banned=tuple(banned))


def options_of(info: t.SystemInfo) -> Options:
    """The options that a prediction was made with; where its corpus holds fewer passages by now, all of them."""
    known = {f.name for f in dataclasses.fields(Options)}
    options = Options(**{k: v for k, v in info.settings.items() if k in known})
    size = shared.passages_of(info.corpus) if info.corpus else 0
    return dataclasses.replace(options, top_k=size) if size and options.passages > size else options


def _add(prefix: str, position: int) -> None:
    text = " ".join(str(st.session_state.get(f"{prefix}.new.{position}", "")).split())
    if text:
        _added(prefix)[position] = text
    else:
        _added(prefix).pop(position, None)


def _undo(prefix: str) -> None:
    for position in st.session_state.pop(f"{prefix}.added", {}):
        st.session_state.pop(f"{prefix}.new.{position}", None)


def adder(prefix: str, position: int, name: str = "an answer") -> None:
    with st.popover(named("Add", name), icon=":material/add:", help="Add an answer after this one"):
        st.text_input(
            f"Answer to add after answer {position + 1}" if position >= 0 else "Answer to add",
            key=f"{prefix}.new.{position}",
            max_chars=MAX_CHARS,
            on_change=_add,
            args=(prefix, position),
            help="This answer is kept as given. The system then looks for further answers.",
        )


def bar(prefix: str, prediction: t.Prediction, corrections: Corrections) -> None:
    """What the corrections mean, and the button that continues; nothing where there are none."""
    if not corrections:
        return
    question = corrected(prediction.question, prediction.answers, corrections)
    with st.container(border=True):
        names = [("keeping", question.pinned), ("excluding", question.banned)]
        parts = "; ".join(f"{what} {', '.join(f'**{escape(x)}**' for x in texts)}" for what, texts in names if texts)
        st.markdown(f"Continue from step {len(question.pinned) + 1}, {parts}.")
        with st.container(horizontal=True):
            st.button(
                "Continue from here",
                key=f"{prefix}.run_on",
                type="primary",
                icon=":material/play_arrow:",
                on_click=_continue,
                args=(question, prediction.system, corrections),
                help="Answers that you added are labelled correct, unless you gave them a label.",
            )
            if corrections.added:
                st.button("Discard the added answers", key=f"{prefix}.undo", on_click=_undo, args=(prefix,))


@action("ask questions")
def _continue(question: t.Question, info: t.SystemInfo, corrections: Corrections) -> None:
    live.start([_plan(question, info, corrections)])


def _plan(question: t.Question, info: t.SystemInfo, corrections: Corrections) -> Plan:
    """A run on from what a person corrected."""
    return Plan(question, info.name, info.corpus, options_of(info), tuple(corrections.added.values()))


@action("run the loop")
def learn(sides: Sequence[tuple[t.Prediction, str, str]]) -> None:
    """Callback: what was added is first made part of an answer set, by running on from there, and the loop begins after that.
    `sides`: prediction, its stored id, prefix of its keys."""
    plans = []
    for prediction, saved, prefix in sides:
        corrections = corrections_of(prefix, labels.load(saved))
        if corrections.added:
            plans.append(_plan(corrected(prediction.question, prediction.answers, corrections), prediction.system, corrections))
    if not plans:
        learning.begin()
        return
    live.start(plans)
    st.session_state[LEARN] = [run.key for run in live.runs()]


def learn_after(runs: Sequence[QuestionRun]) -> None:
    """Begins the loop where it was asked for when these runs, which are saved now, began."""
    if st.session_state.pop(LEARN, None) == [run.key for run in runs]:
        reported(learning.begin)()
