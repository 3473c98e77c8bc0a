"""Judging: the answers of one or two systems, blind and shuffled; the keys belong to the answer that is marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from core.annotating import judging as form_of
from core.annotating.judging import Unit, unit_key
from core.annotating.labels import LABELS, Preference, QuestionLabel
from core.text import find_spans
from pages.annotate import error_labels, state, submit_bar
from pages.annotate.state import Work
from pages.ui.markup import changes, escape, full_label, highlighted
from storage.records.annotation import JudgedAnswer, JudgingWork, MissingAnswer, ShownAnswer, Side

ANSWER_LABELS = {label: (label.capitalize(), str(key)) for key, label in enumerate(LABELS, 1)}
QUESTION_LABELS: dict[QuestionLabel, tuple[str, str]] = {
    "fits": ("Fits", "7"),
    "ambiguous_still": ("Still ambiguous", "8"),
    "changes_meaning": ("Changes the meaning", "9"),
}
# the colour shows only which label is selected
ICONS = {
    "correct": ":material/check:",
    "wrong": ":material/close:",
    "unsupported": ":material/link_off:",
    "duplicate": ":material/content_copy:",
    "outdated": ":material/history:",
    "contradicts": ":material/compare_arrows:",
    "fits": ":material/check:",
    "ambiguous_still": ":material/alt_route:",
    "changes_meaning": ":material/close:",
}
KEYS = (
    (f"1–{len(LABELS)}", ", ".join(LABELS)),
    ("7–9", "question fits, still ambiguous, changes the meaning"),
    ("A", "set A is better"),
    ("B", "set B"),
    ("E", "equally good"),
    ("L", "all others correct"),
    ("N", "next answer"),
    ("P", "previous"),
)
PREFERENCES: dict[Preference, tuple[str, str]] = {"a": ("Set A", "A"), "b": ("Set B", "B"), "tie": ("Equally good", "E")}


def units(work: Work) -> list[tuple[Side, ShownAnswer, Unit]]:
    """All answers in the order of the screen."""
    sides = work.sheet.sides if work.sheet else ()
    return [
        (side, answer, Unit(unit_key(answer.prediction_id, answer.position), answer.question is not None))
        for side in sides
        for answer in side.answers
    ]


def content(work: Work) -> JudgingWork:
    form: form_of.Form = work.form
    answers = tuple(
        JudgedAnswer(
            answer.prediction_id,
            answer.position,
            form.labels[unit.key],
            form.questions[unit.key] if unit.asks else None,
            form.notes.get(unit.key, ""),
            error_labels.labels_of(work, unit.key),
        )
        for _, answer, unit in units(work)
    )
    missing = tuple(MissingAnswer(aliases[0], aliases[1:]) for aliases in form.missing_answers())
    return JudgingWork(answers, missing, form.preference, note=form.note.strip())


def answers(work: Work) -> list[str]:
    """What is marked in an opened passage: every answer shown and every one added."""
    return [answer.text for _, answer, _ in units(work)] + [name for names in work.form.missing_answers() for name in names]


def blocked(work: Work) -> bool:
    return bool(problems(work))


def problems(work: Work) -> tuple[str, ...]:
    return form_of.problems(work.form, [u for *_, u in units(work)], len(work.sheet.sides) if work.sheet else 0)


# ---------------------------------------------------------------- callbacks


# part -> (labels, the form's labels by unit, what sets one)
PARTS: dict[str, tuple[Any, Callable[[form_of.Form], Any], Callable[..., form_of.Form]]] = {
    "answer": (ANSWER_LABELS, lambda form: form.labels, form_of.judge),
    "question": (QUESTION_LABELS, lambda form: form.questions, form_of.judge_question),
}


def _judge(work: Work, index: int, part: str, label: str) -> None:
    """Sets a label, or takes it back; moves on to the next open answer when this one is complete."""
    all_units = [u for *_, u in units(work)]
    unit = all_units[index]
    _, labels, set_label = PARTS[part]
    form = set_label(work.form, unit.key, None if labels(work.form).get(unit.key) == label else label)
    state.change(work, form)
    next_index = None if form_of.open_parts(form, unit) else form_of.next_open(form, all_units, index)
    work.current = index if next_index is None else next_index


def _label_rest(work: Work) -> None:
    """What has no label yet is correct, and its question fits."""
    form: form_of.Form = work.form
    for *_, unit in units(work):
        for part in form_of.open_parts(form, unit):
            form = PARTS[part][2](form, unit.key, "correct" if part == "answer" else "fits")
    state.change(work, form)


def _move(work: Work, step: int) -> None:
    count = len(units(work))
    work.current = (work.current + step) % count if count else 0


def _prefer(work: Work, preference: Preference) -> None:
    state.change(work, replace(work.form, preference=None if work.form.preference == preference else preference))


def _note_answer(work: Work, index: int, text: str) -> None:
    state.change(work, form_of.annotate(work.form, units(work)[index][2].key, text), typed=f"note.{index}")


def _missing(work: Work, line: int, text: str) -> None:
    lines = work.form.missing.splitlines()
    lines = [*lines, ""] if line >= len(lines) else lines
    lines[line] = " ".join(text.split())
    state.change(work, replace(work.form, missing="\n".join(lines)), typed=f"missing.{line}")


# ---------------------------------------------------------------- drawing


def keys(work: Work) -> list[tuple[str, str]]:
    is_comparison = work.sheet is not None and len(work.sheet.sides) > 1
    return [(key, effect) for key, effect in KEYS if is_comparison or key not in ("A", "B", "E")]


def focus(work: Work) -> tuple[str, str, str]:
    """(key of the container that gets the focus, a token that is new when it moves there, key of the card to show with it)."""
    all_units = units(work)
    if not all_units:
        return "", "", ""
    open_parts = form_of.open_parts(work.form, all_units[work.current][2])
    place = work.key("question" if open_parts == ("question",) else "answer", work.current)
    # not at each change: it would leave a text field while somebody types in it
    token = f"{work.task.item}.{place}.{len(work.form.labels)}.{len(work.form.questions)}"
    return place, token, work.key("card", work.current)


def draw(work: Work) -> None:
    if work.sheet is None:
        return
    all_units = units(work)
    remaining = sum(bool(form_of.open_parts(work.form, u)) for *_, u in all_units)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(all_units) - remaining} of {len(all_units)} answers judged", width="content")
        work.button(
            "All others correct", ("rest",), _label_rest, shortcut="L", disabled=not remaining, icon=":material/done_all:"
        )
        work.button(full_label("Next", "answer"), ("next",), _move, 1, shortcut="N", type="tertiary")
        work.button(full_label("Previous", "answer"), ("previous",), _move, -1, shortcut="P", type="tertiary")
    sides = work.sheet.sides
    columns = st.columns(len(sides), gap="medium") if len(sides) > 1 else [st.container()]
    index = 0
    for side, column in zip(sides, columns):
        with column:
            if len(sides) > 1:
                st.markdown(f"**Set {side.name.upper()}**")
            if not side.answers:
                st.caption("This set is empty: the system found no answer.")
            for answer in side.answers:
                _card(work, index, answer, all_units[index][2])
                index += 1
    if len(sides) > 1:
        st.markdown("**Which set is better?**")
        with st.container(horizontal=True):
            for preference, (label, key) in PREFERENCES.items():
                work.button(
                    label,
                    ("prefer", preference),
                    _prefer,
                    preference,
                    shortcut=key,
                    type="primary" if work.form.preference == preference else "secondary",
                )
    _missing_answers(work)
    submit_bar.note(work)
    for problem in problems(work) if work.has_tried else ():
        submit_bar.show_mistake(problem)


def _card(work: Work, index: int, answer: ShownAnswer, unit: Unit) -> None:
    mark, name = "", f"answer {index + 1}, {answer.text}"
    if index == work.current:
        mark = ":orange-badge[:material/keyboard: keys apply here]"
    elif not form_of.open_parts(work.form, unit):
        mark = ":green[:material/done:]"
    with st.container(border=True, key=work.key("card", index)):
        st.markdown(f"{index + 1}\\. **{escape(answer.text)}** {mark}")
        _passages(work, answer)
        _label_buttons(work, index, "answer", unit.key, name)
        error_labels.draw(work, index, unit.key, name)
        if answer.question is not None:
            st.markdown(changes(work.task.question, answer.question))
            _label_buttons(work, index, "question", unit.key, f"the question of {name}")
        label = full_label("Note" if unit.key not in work.form.notes else "Note ✓", f"on {name}")
        with st.popover(label, type="tertiary", key=work.key("note.open", index)):
            note = work.form.notes.get(unit.key, "")
            work.field(f"Note on answer {index + 1}", ("note", index), note, _note_answer, index)


def _label_buttons(work: Work, index: int, part: str, unit: str, name: str) -> None:
    choices, labels, _ = PARTS[part]
    with st.container(horizontal=True, key=work.key(part, index)):
        for value, (label, key) in choices.items():
            work.button(
                full_label(label, f"for {name}"),
                (part, index, value),
                _judge,
                index,
                part,
                value,
                icon=ICONS[value],
                type="primary" if labels(work.form).get(unit) == value else "secondary",
                shortcut=key if index == work.current else None,
            )


def _passages(work: Work, answer: ShownAnswer) -> None:
    """Each passage that the answer was read from, in full, with the answer marked: the proof may be in any of them."""
    passages = {p.id: p for p in (work.sheet.passages if work.sheet else ())}
    sources = [passages[i] for i in dict.fromkeys(e.passage_id for e in answer.evidence) if i in passages]
    if not sources:
        st.caption(":material/link_off: The system gave no passage for it.")
        return
    for passage in sources:
        spans = [(e.start, e.end) for e in answer.evidence if e.passage_id == passage.id]
        text = highlighted(passage.text, [*spans, *find_spans(passage.text, answer.text)])
        st.markdown(f"**{escape(passage.title or passage.id)}**: {text}")  # no caption: it has to be read


def _missing_answers(work: Work) -> None:
    lines = work.form.missing.splitlines()
    st.markdown("**Missing answers** :gray[one per field; separate other spellings with |]")
    for line, text in enumerate([*lines, ""]):
        work.field(
            f"Missing answer {line + 1}",
            ("missing", line),
            text,
            _missing,
            line,
            label_visibility="collapsed",
            placeholder="answer | another spelling",
        )


def aside(work: Work) -> None:
    """Beside the form: what the systems read."""
    with st.expander(f"All passages the systems read ({len(work.sheet.passages) if work.sheet else 0})"):
        for passage in work.sheet.passages if work.sheet else ():
            st.markdown(f"**{escape(passage.title or passage.id)}**")
            st.caption(escape(passage.text))
