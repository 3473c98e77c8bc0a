"""Generation: a person's own answer set for a question."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import streamlit as st

from core.annotating import checks
from core.annotating import generation as form_of
from core.annotating.aliases import parse_aliases
from core.annotating.checks import Finding
from core.annotating.generation import PairField
from core.types import Annotation, Passage
from pages.annotate import search, state, submit_bar, suggestions
from pages.annotate.state import Work
from pages.ui import keys
from pages.ui.markup import changes, escape, full_label
from storage.records.annotation import GenerationWork

KINDS = {
    "none": ("No answer", keys.NO_ANSWER),
    "single": ("A single answer", keys.SINGLE_ANSWER),
    "multiple": ("Several answers", keys.SEVERAL_ANSWERS),
}
KEYS = keys.WRITING
Findings = tuple[tuple[Finding, ...], tuple[Finding, ...]]


def content(work: Work) -> GenerationWork:
    """The annotation to submit.  Raises InputError while no kind is chosen."""
    return GenerationWork(work.form.annotation(), suggestions.uses(work), note=work.form.note.strip())


def findings(work: Work) -> Findings:
    """(blocking findings, doubts); empty while no kind is chosen."""
    if not work.form.kind:
        return (), ()
    return findings_of(work, work.form.annotation(), int(work.project.thresholds["must_read"]))


def findings_of(work: Work, annotation: Annotation, must_read: int) -> Findings:
    """`must_read`: the number of passages that must have been opened."""
    prompt, alias_words = work.task.question, int(work.project.thresholds["alias_words"])
    wrong = checks.errors(annotation, prompt, opened_count=len(work.opened_ids) if must_read else None, must_read=must_read)
    return wrong, checks.doubts(annotation, prompt, reference_date=work.project.reference_date, alias_words=alias_words)


def lines(work: Work, form: form_of.GenerationForm) -> list[str]:
    """A draft as text, for comparing two."""
    out = [KINDS[form.kind][0]] if form.kind else []
    for pair in form.counted_pairs():
        out += [f"Question: {pair.question}"] if form.kind == "multiple" and pair.question.strip() else []
        out.append(f"Answer: {pair.answers}")
        out += [f"Passage: {search.title(work, passage)}" for passage in pair.passage_ids]
    return out + ([f"Note: {form.note}"] if form.note else [])


def blocked(work: Work) -> bool:
    return not work.form.kind or bool(findings(work)[0])


# ---------------------------------------------------------------- callbacks


def _typed(work: Work, key: int, field: str, text: str) -> None:
    form = form_of.fill(work.form, key, question=text) if field == "question" else form_of.fill(work.form, key, answers=text)
    state.change(work, form, typed=f"{field}.{key}")


# ---------------------------------------------------------------- drawing


def answers(work: Work) -> Iterator[str]:
    """The answers to mark in an opened passage: the person's own and the suggested ones."""
    for pair in work.form.pairs:
        yield from parse_aliases(pair.answers)
    for suggestion in work.suggestions:
        yield suggestion.text


def cite_buttons(work: Work, passage: Passage) -> None:
    """Buttons under an opened passage that make it evidence for an answer."""
    pairs = [p for p in work.form.counted_pairs() if not p.empty]
    if not pairs:
        return
    st.caption("This passage is evidence for:")
    with st.container(horizontal=True):
        for number, pair in enumerate(pairs, 1):
            is_evidence = passage.id in pair.passage_ids
            work.button(
                escape(pair.answers[:40] or f"answer {number}"),
                ("cite", pair.key, passage.id),
                state.attempt,
                partial(lambda key: form_of.cite(work.form, key, passage.id), pair.key),
                False,
                icon=":material/check_box:" if is_evidence else ":material/check_box_outline_blank:",
            )


def draw(work: Work) -> None:
    notes = findings(work)
    with st.container(horizontal=True):
        for kind, (label, key) in KINDS.items():
            look = "primary" if work.form.kind == kind else "secondary"
            choose = partial(lambda kind: form_of.choose(work.form, kind), kind)
            work.button(label, ("kind", kind), state.attempt, choose, False, type=look, shortcut=key)
    pairs = work.form.counted_pairs()
    for number, pair in enumerate(pairs):
        _pair(work, number, pair, len(pairs) > 1, notes)
    if work.form.kind == "multiple":
        work.button(
            "Add an answer",
            ("add",),
            state.attempt,
            lambda: form_of.add_pair(work.form),
            icon=":material/add:",
            shortcut=keys.ADD,
        )
    elif work.form.kind == "none":
        st.caption("You say that the passages don't answer any reading of this question.")
    hidden = sum(not p.empty for p in work.form.pairs) - sum(not p.empty for p in pairs)
    if hidden > 0:
        st.caption(f"{hidden} more under Several answers, hidden for now. Choose Several answers to see them again.")
    submit_bar.show_findings(work, notes, None)
    submit_bar.note(work)
    if work.has_tried and not work.form.kind:
        submit_bar.show_mistake("First choose no answer, a single answer, or several answers.")


def _pair(work: Work, number: int, pair: PairField, can_delete: bool, notes: Findings) -> None:
    is_multiple = work.form.kind == "multiple"
    with st.container(border=True, key=work.key("pair", pair.key)):
        if is_multiple:
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
                st.markdown(changes(work.task.question, pair.question))  # in full: the field may be too short
            submit_bar.show_findings(work, notes, number, "question")
        work.field(
            f"Answer {number + 1}" if is_multiple else "Answer",
            ("answers", pair.key),
            pair.answers,
            _typed,
            pair.key,
            "answers",
            placeholder="answer | another spelling",
            help="Separate other spellings of the same answer with |",
        )
        submit_bar.show_findings(work, notes, number, "answers")
        with st.container(horizontal=True, vertical_alignment="center"):
            if pair.passage_ids:
                titles = "; ".join(escape(search.title(work, i)) for i in pair.passage_ids)
                st.caption(f":material/menu_book: {titles}")
            if is_multiple and can_delete:
                work.button(
                    full_label("Delete", f"answer {number + 1}"),
                    ("delete", pair.key),
                    state.attempt,
                    lambda: form_of.delete_pair(work.form, pair.key),
                    icon=":material/delete:",
                    type="tertiary",
                )
