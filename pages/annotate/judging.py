"""Judging: the answers of one or two systems, blind and shuffled; the keys belong to the answer that is marked."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.annotating import judging as form_of
from core.annotating.judging import Unit, unit_key
from core.annotating.labels import LABELS, Label, Preference, QuestionLabel
from core.text import find_spans
from pages.annotate import error_labels, state, submit_bar
from pages.annotate.state import Work
from pages.ui.keyboard import SUBMIT, capture_keys, legend
from pages.ui.markup import changes, escape, highlighted, named
from storage.records.annotation import JudgedAnswer, JudgingWork, MissingAnswer, ShownAnswer, Side

ANSWER_LABELS = {label: (label.capitalize(), str(key)) for key, label in enumerate(LABELS, 1)}
QUESTION_LABELS: dict[QuestionLabel, tuple[str, str]] = {
    "fits": ("Fits", "5"),
    "ambiguous_still": ("Still ambiguous", "6"),
    "changes_meaning": ("Changes the meaning", "7"),
}
# beside the colour, which says only what was chosen
ICONS = {
    "correct": ":material/check:",
    "wrong": ":material/close:",
    "unsupported": ":material/link_off:",
    "duplicate": ":material/content_copy:",
    "fits": ":material/check:",
    "ambiguous_still": ":material/alt_route:",
    "changes_meaning": ":material/close:",
}
PREFERENCES: dict[Preference, tuple[str, str]] = {"a": ("Set A", "A"), "b": ("Set B", "B"), "tie": ("Equally good", "E")}
MEANINGS = (
    "**Correct**: it answers the question in some reading, and its passage says so. **Wrong**: it does not answer it. **Unsupported**: it "
    "may be true, but the passage does not say so. **Duplicate**: the same as an earlier answer in the set.  \n"
    "**Fits**: the rewritten question has only this answer, and still asks what was asked. **Still ambiguous**: it has other answers too. "
    "**Changes the meaning**: it asks something else."
)


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
            error_labels.chosen(work, unit.key),
        )
        for _, answer, unit in units(work)
    )
    missing = tuple(MissingAnswer(aliases[0], aliases[1:]) for aliases in form.missing_answers())
    return JudgingWork(answers, missing, form.preference, note=form.note.strip())


def answers(work: Work) -> list[str]:
    """What is marked in a passage that is opened: every answer shown and every one added."""
    return [answer.text for _, answer, _ in units(work)] + [name for names in work.form.missing_answers() for name in names]


def problems(work: Work) -> tuple[str, ...]:
    return form_of.problems(work.form, [u for *_, u in units(work)], len(work.sheet.sides) if work.sheet else 0)


# ---------------------------------------------------------------- callbacks


def _judge(work: Work, at: int, label: Label) -> None:
    unit = units(work)[at][2]
    same = work.form.labels.get(unit.key) == label
    _then(work, at, form_of.judge(work.form, unit.key, None if same else label))


def _judge_question(work: Work, at: int, label: QuestionLabel) -> None:
    unit = units(work)[at][2]
    same = work.form.questions.get(unit.key) == label
    _then(work, at, form_of.judge_question(work.form, unit.key, None if same else label))


def _then(work: Work, at: int, form: form_of.Form) -> None:
    """Saves, and moves on to the next open answer when this one is done."""
    state.change(work, form)
    every = [u for *_, u in units(work)]
    work.current = at
    if not form_of.open_parts(form, every[at]):
        following = form_of.next_open(form, every, at)
        work.current = at if following is None else following


def _move(work: Work, by: int) -> None:
    count = len(units(work))
    work.current = (work.current + by) % count if count else 0


def _prefer(work: Work, preference: Preference) -> None:
    same = work.form.preference == preference
    state.change(work, replace(work.form, preference=None if same else preference))


def _note_answer(work: Work, at: int) -> None:
    text = str(st.session_state.get(work.key("note", at)) or "")
    state.change(work, form_of.annotate(work.form, units(work)[at][2].key, text), typed=f"note.{at}")


def _missing(work: Work, line: int) -> None:
    text = " ".join(str(st.session_state.get(work.key("missing", line)) or "").split())
    lines = work.form.missing.splitlines()
    lines = [*lines, ""] if line >= len(lines) else lines
    lines[line] = text
    state.change(work, replace(work.form, missing="\n".join(lines)), typed=f"missing.{line}")


# ---------------------------------------------------------------- drawing


@st.fragment
def pane(work: Work) -> None:
    if work.refresh:
        work.refresh = False
        st.rerun()
    if work.sheet is None:
        return
    every = units(work)
    left = sum(bool(form_of.open_parts(work.form, u)) for *_, u in every)
    st.caption(f"{len(every) - left} of {len(every)} answers judged")
    with st.expander("What the labels mean"):
        st.markdown(MEANINGS)
    sides = work.sheet.sides
    places = st.columns(len(sides), gap="medium") if len(sides) > 1 else [st.container()]
    at = 0
    for side, place in zip(sides, places):
        with place:
            if len(sides) > 1:
                st.markdown(f"**Set {side.name.upper()}**")
            if not side.answers:
                st.caption("This set is empty: the system found no answer.")
            for answer in side.answers:
                _card(work, at, answer, every[at][2])
                at += 1
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
    _below(work)
    if work.tried:
        for problem in problems(work):
            submit_bar.show_mistake(problem)
    submit_bar.actions(work, make=content, blocked=lambda: bool(problems(work)))
    with st.container(horizontal=True):
        work.button("Next answer", ("next",), _move, 1, shortcut="N", type="tertiary")
        work.button("Previous answer", ("previous",), _move, -1, shortcut="P", type="tertiary")
    keys = [
        (f"1–{len(LABELS)}", ", ".join(LABELS)),
        ("5–7", "question fits, still ambiguous, changes the meaning"),
    ]
    keys += [("A", "set A is better"), ("B", "set B"), ("E", "equally good")] if len(sides) > 1 else []
    legend([*keys, ("N", "next answer"), ("P", "previous"), ("U", "undo"), (SUBMIT, "submit")])
    if every:
        left = form_of.open_parts(work.form, every[work.current][2])
        place = work.key("question" if left == ("question",) else "answer", work.current)
        # not at each change: it would leave a text field while somebody types in it
        token = f"{work.task.item}.{place}.{len(work.form.labels)}.{len(work.form.questions)}"
        capture_keys(state.on_screen(work), place, token, work.key("card", work.current))
    else:
        capture_keys(state.on_screen(work))


def _card(work: Work, at: int, answer: ShownAnswer, unit: Unit) -> None:
    now = at == work.current
    done = not form_of.open_parts(work.form, unit)
    with st.container(border=True, key=work.key("card", at)):
        mark = ":orange-badge[:material/keyboard: keys apply here]" if now else (":green[:material/done:]" if done else "")
        st.caption(escape(work.task.question))  # the heading is out of sight by now
        st.markdown(f"{at + 1}\\. **{escape(answer.text)}** {mark}")
        _passages(work, at, answer)
        _label_buttons(work, at, "answer", ANSWER_LABELS, work.form.labels.get(unit.key), now)
        error_labels.draw(work, at, unit.key, _name(at, answer))
        if answer.question is not None:
            st.markdown(changes(work.task.question, answer.question))
            _label_buttons(work, at, "question", QUESTION_LABELS, work.form.questions.get(unit.key), now)
        with st.popover(
            named("Note" if unit.key not in work.form.notes else "Note ✓", f"on {_name(at, answer)}"),
            type="tertiary",
            key=work.key("note.open", at),
        ):
            work.field(f"Note on answer {at + 1}", ("note", at), work.form.notes.get(unit.key, ""), _note_answer, at)


def _name(at: int, answer: ShownAnswer) -> str:
    return f"answer {at + 1}, {answer.text}"


def _label_buttons(
    work: Work,
    at: int,
    what: str,
    choices: dict[str, tuple[str, str]],
    chosen: str | None,
    now: bool,  # type: ignore[type-arg]
) -> None:
    of = _name(at, units(work)[at][1])
    with st.container(horizontal=True, key=work.key(what, at)):
        for value, (label, key) in choices.items():
            work.button(
                named(label, f"for {of}" if what == "answer" else f"for the question of {of}"),
                (what, at, value),
                _judge_question if what == "question" else _judge,
                at,
                value,
                icon=ICONS[value],
                type="primary" if chosen == value else "secondary",
                shortcut=key if now else None,
            )


def _passages(work: Work, at: int, answer: ShownAnswer) -> None:
    """Each passage that the answer was read from, whole, with the answer marked: what proves it may be in any of them."""
    passages = {p.id: p for p in (work.sheet.passages if work.sheet else ())}
    sources = [passages[i] for i in dict.fromkeys(e.passage_id for e in answer.evidence) if i in passages]
    if not sources:
        st.caption(":material/link_off: The system gave no passage for it.")
        return
    shown = []
    for passage in sources:
        spans = [(e.start, e.end) for e in answer.evidence if e.passage_id == passage.id]
        marked = highlighted(passage.text, [*spans, *find_spans(passage.text, answer.text)])
        shown.append(f"**{escape(passage.title or passage.id)}**: {marked}")  # no caption: it is what has to be read
    st.markdown(shown[0])
    if len(shown) > 1:
        count = len(shown) - 1
        label = f"{count} more passage{'s' if count > 1 else ''} for this answer"
        with st.expander(named(label, _name(at, answer)), expanded=True, icon=":material/menu_book:"):
            for text in shown[1:]:
                st.markdown(text)


def _below(work: Work) -> None:
    lines = work.form.missing.splitlines()
    st.markdown("**Missing answers** :gray[one per field; separate aliases with |]")
    for line, text in enumerate([*lines, ""]):
        work.field(
            f"Missing answer {line + 1}",
            ("missing", line),
            text,
            _missing,
            line,
            label_visibility="collapsed",
            placeholder="answer | alias",
        )
    submit_bar.note(work)
    with st.expander(f"All passages the systems read ({len(work.sheet.passages) if work.sheet else 0})"):
        for passage in work.sheet.passages if work.sheet else ():
            st.markdown(f"**{escape(passage.title or passage.id)}**")
            st.caption(escape(passage.text))
