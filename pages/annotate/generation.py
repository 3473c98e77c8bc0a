"""Generation: one's own answer set for a question, with the suggestions of the project's systems to accept, edit or reject."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from core.annotating import checks
from core.annotating import generation as form_of
from core.annotating.aliases import parse_aliases
from core.annotating.checks import Finding
from core.annotating.generation import PairField
from core.types import Passage
from pages.annotate import search, state, submit_bar, suggestions
from pages.annotate.state import Work
from pages.ui.keyboard import SUBMIT, capture_keys, legend
from pages.ui.markup import changes, escape, named
from storage.records.annotation import GenerationWork

KINDS = {"none": ("No answer", "1"), "single": ("A single answer", "2"), "multiple": ("Several answers", "3")}
KEYS = (
    ("1–3", "no answer, a single answer, several answers"),
    ("A", "accept the suggestion"),
    ("X", "reject it"),
    ("E", "read the evidence"),
    ("B", "back to the results"),
    ("P", "add an answer"),
    ("U", "undo"),
    (SUBMIT, "submit"),
)


def content(work: Work) -> GenerationWork:
    """Raises InputError while no kind is chosen."""
    return GenerationWork(work.form.annotation(), suggestions.uses(work), note=work.form.note.strip())


def findings(work: Work) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """(what blocks, what is doubtful); nothing while no kind is chosen."""
    if not work.form.kind:
        return (), ()
    limits = work.project.thresholds
    annotation, prompt = work.form.annotation(), work.task.question
    must = int(limits.get("must_read", 1))
    wrong = checks.errors(annotation, prompt, opened=len(work.opened) if must else None, must_read=must)
    doubtful = checks.doubts(
        annotation, prompt, reference_date=work.project.reference_date, alias_words=int(limits.get("alias_words", 7))
    )
    return wrong, doubtful


# ---------------------------------------------------------------- callbacks


def _typed(work: Work, key: int, field: str) -> None:
    text = str(st.session_state.get(work.key(field, key)) or "")
    form = form_of.fill(work.form, key, question=text) if field == "question" else form_of.fill(work.form, key, answers=text)
    state.change(work, form, typed=f"{field}.{key}")


def _kind(work: Work, kind: form_of.Kind) -> None:
    state.attempt(work, lambda: form_of.choose(work.form, kind), redraw=False)


def _cite(work: Work, key: int, passage_id: str) -> None:
    state.attempt(work, lambda: form_of.cite(work.form, key, passage_id), redraw=False)
    work.refresh = True


# ---------------------------------------------------------------- drawing


def answers(work: Work) -> Iterator[str]:
    """Marked in an opened passage: one's own answers, and the suggested ones."""
    for pair in work.form.pairs:
        yield from parse_aliases(pair.answers)
    for suggestion in work.suggestions:
        yield suggestion.text


def cite_buttons(work: Work, passage: Passage) -> None:
    """Under an opened passage: which of the answers it is evidence for."""
    pairs = [p for p in work.form.shown() if not p.empty]
    if not pairs:
        return
    st.caption("This passage is evidence for:")
    with st.container(horizontal=True):
        for number, pair in enumerate(pairs, 1):
            is_evidence = passage.id in pair.passage_ids
            work.button(
                escape(pair.answers[:40] or f"answer {number}"),
                ("cite", pair.key, passage.id),
                _cite,
                pair.key,
                passage.id,
                icon=":material/check_box:" if is_evidence else ":material/check_box_outline_blank:",
            )


@st.fragment
def pane(work: Work) -> None:
    if work.refresh:
        work.refresh = False
        st.rerun()
    wrong, doubtful = findings(work)
    shown = wrong if work.tried else ()
    suggestions.draw(work)
    st.markdown("**Your annotation**")
    with st.container(horizontal=True):
        for kind, (label, key) in KINDS.items():
            work.button(
                label, ("kind", kind), _kind, kind, type="primary" if work.form.kind == kind else "secondary", shortcut=key
            )
    pairs = work.form.shown()
    for number, pair in enumerate(pairs):
        _pair(work, number, pair, len(pairs) > 1, [f for f in (*shown, *doubtful) if f.pair == number], shown)
    if work.form.kind == "multiple":
        work.button(
            "Add an answer", ("add",), state.attempt, lambda: form_of.add_pair(work.form), icon=":material/add:", shortcut="P"
        )
    elif work.form.kind == "none":
        st.caption("You say that the passages do not answer this question in any reading of it.")
    aside = len([p for p in work.form.pairs if not p.empty]) - len([p for p in pairs if not p.empty])
    if aside > 0:
        st.caption(f"{aside} more under Several answers, hidden for now. Choose Several answers to see them again.")
    for finding in (f for f in (*shown, *doubtful) if f.pair is None):
        _say(finding, shown)
    submit_bar.note(work)
    if work.tried and not work.form.kind:
        submit_bar.show_mistake("First choose no answer, a single answer, or several answers.")
    submit_bar.actions(work, make=content, blocked=lambda: not work.form.kind or bool(findings(work)[0]))
    legend(k for k in KEYS if work.suggestions or k[0] not in "AXE")
    capture_keys(state.on_screen(work))


def _say(finding: Finding, errors: tuple[Finding, ...]) -> None:
    if finding in errors:
        submit_bar.show_mistake(finding.message)
    else:
        st.caption(f":orange[:material/warning: {escape(finding.message)}]")


def _pair(
    work: Work, number: int, pair: PairField, several: bool, own_findings: list[Finding], errors: tuple[Finding, ...]
) -> None:
    with st.container(border=True, key=work.key("pair", pair.key)):
        if work.form.kind == "multiple":
            work.field(
                f"Question {number + 1}",
                ("question", pair.key),
                pair.question,
                _typed,
                pair.key,
                "question",
                placeholder="The question, changed so that it has only this answer",
            )
            if pair.question.strip():
                st.markdown(changes(work.task.question, pair.question))  # whole, where the field is too short
            for finding in (f for f in own_findings if f.field == "question"):
                _say(finding, errors)
        work.field(
            f"Answer {number + 1}" if work.form.kind == "multiple" else "Answer",
            ("answers", pair.key),
            pair.answers,
            _typed,
            pair.key,
            "answers",
            placeholder="answer | another spelling",
            help="Separate aliases of the same answer with |",
        )
        for finding in (f for f in own_findings if f.field == "answers"):
            _say(finding, errors)
        with st.container(horizontal=True, vertical_alignment="center"):
            if pair.passage_ids:
                titles = "; ".join(escape(search.title(work, i)) for i in pair.passage_ids)
                st.caption(f":material/menu_book: {titles}")
            if work.form.kind == "multiple" and several:
                work.button(
                    named("Delete", f"answer {number + 1}"),
                    ("delete", pair.key),
                    state.attempt,
                    lambda: form_of.delete_pair(work.form, pair.key),
                    icon=":material/delete:",
                    type="tertiary",
                )
