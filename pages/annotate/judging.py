"""Judging the answers of one or two systems, blind and shuffled.  The keys apply to the marked answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from core.annotating import judging as form_of
from core.annotating.aliases import join_aliases
from core.annotating.judging import Unit, unit_key
from core.annotating.labels import LABELS, Preference, QuestionLabel
from core.text import answer_key, find_spans, listed
from pages.annotate import state, submit_bar
from pages.annotate.state import Work
from pages.ui import keys
from pages.ui.markup import changes, escape, full_label, highlighted
from storage.records.annotation import JudgedAnswer, JudgingWork, MissingAnswer, ShownAnswer, Side

ANSWER_LABELS = {label: (label.capitalize(), keys.ANSWER_LABELS[label]) for label in LABELS}
QUESTION_LABELS: dict[QuestionLabel, tuple[str, str]] = {
    "fits": ("Fits", keys.FITS),
    "ambiguous_still": ("Still ambiguous", keys.STILL_AMBIGUOUS),
    "changes_meaning": ("Changes the meaning", keys.CHANGES_MEANING),
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
PREFERENCES: dict[Preference, tuple[str, str]] = {
    "a": ("Set A", keys.SET_A),
    "b": ("Set B", keys.SET_B),
    "tie": ("Equally good", keys.EQUAL_SETS),
}


@dataclass(frozen=True, slots=True)
class Card:
    """An answer that is shown and labelled once: from one set, or from both if they have it from the same passages."""

    unit: Unit
    answers: tuple[ShownAnswer, ...]  # one a set
    sides: tuple[Side, ...]
    questions: Mapping[str, str]  # key of its label -> disambiguated question

    @property
    def text(self) -> str:
        return self.answers[0].text


def _same(a: ShownAnswer, b: ShownAnswer) -> bool:
    """Whether one label fits both, because they are the same answer read from the same passages."""
    passages = ({e.passage_id for e in answer.evidence} for answer in (a, b))
    return answer_key(a.text) == answer_key(b.text) and next(passages) == next(passages)


def cards(work: Work) -> list[Card]:
    """All answers in screen order: those in both sets, then the remaining ones of each."""
    if work.sheet is None:
        return []
    sides = work.sheet.sides
    pairs: list[tuple[ShownAnswer, ...]] = []
    remaining = list(sides[1].answers) if len(sides) > 1 else []
    for answer in sides[0].answers:
        twin = next((other for other in remaining if _same(answer, other)), None)
        if twin is not None:
            remaining.remove(twin)
        pairs.append((answer,) if twin is None else (answer, twin))
    groups = [(p, sides) for p in pairs if len(p) > 1]
    groups += [(p, sides[:1]) for p in pairs if len(p) == 1] + [((answer,), sides[1:]) for answer in remaining]
    return [_card_of(answers, in_sides) for answers, in_sides in groups]


def _card_of(answers: tuple[ShownAnswer, ...], sides: Sequence[Side]) -> Card:
    questions: dict[str, str] = {}
    for answer in answers:
        if answer.question is not None and answer.question not in questions.values():
            questions[unit_key(answer.prediction_id, answer.position)] = answer.question
    first = answers[0]
    return Card(Unit(unit_key(first.prediction_id, first.position), tuple(questions)), answers, tuple(sides), questions)


def compares(work: Work) -> bool:
    """Whether there are two sets that differ, so that one may be better."""
    return work.sheet is not None and len(work.sheet.sides) > 1 and any(len(card.answers) == 1 for card in cards(work))


def content(work: Work) -> JudgingWork:
    form: form_of.JudgingForm = work.form
    judged = []
    for card in cards(work):
        key_of = {question: key for key, question in card.questions.items()}
        for answer in card.answers:
            judged.append(
                JudgedAnswer(
                    answer.prediction_id,
                    answer.position,
                    form.labels[card.unit.key],
                    form.questions[key_of[answer.question]] if answer.question is not None else None,
                    form.notes.get(card.unit.key, ""),
                    _error_labels(work, card.unit.key),
                )
            )
    missing = tuple(MissingAnswer(aliases[0], aliases[1:]) for aliases in form.missing_answers())
    is_same = work.sheet is not None and len(work.sheet.sides) > 1 and not compares(work)
    return JudgingWork(tuple(judged), missing, "tie" if is_same else form.preference, note=form.note.strip())


def lines(work: Work, form: form_of.JudgingForm) -> list[str]:
    """A draft as text, for comparing two."""
    out = []
    for card in cards(work):
        labels = [
            form.labels.get(card.unit.key),
            *(form.questions.get(key) for key in card.questions),
            *form.errors.get(card.unit.key, ()),
        ]
        words = [QUESTION_LABELS[x][0] if x in QUESTION_LABELS else x for x in labels if x]
        note = form.notes.get(card.unit.key, "")
        out.append(f"{card.text}: {', '.join(words) or 'no label'}{f' ({note})' if note else ''}")
    out += [f"Missing: {join_aliases(aliases)}" for aliases in form.missing_answers()]
    out += [f"Better: {PREFERENCES[form.preference][0]}"] if form.preference else []
    return out + ([f"Note: {form.note}"] if form.note else [])


def answers(work: Work) -> list[str]:
    """The answers to mark in an opened passage: all shown and all added ones."""
    return [card.text for card in cards(work)] + [name for names in work.form.missing_answers() for name in names]


def blocked(work: Work) -> bool:
    return bool(problems(work))


def problems(work: Work) -> tuple[str, ...]:
    return form_of.problems(work.form, [card.unit for card in cards(work)], compares(work))


# ---------------------------------------------------------------- callbacks


# part -> (labels, the form's labels by unit, what sets one)
PARTS: dict[str, tuple[Any, Callable[[form_of.JudgingForm], Any], Callable[..., form_of.JudgingForm]]] = {
    "answer": (ANSWER_LABELS, lambda form: form.labels, form_of.judge),
    "question": (QUESTION_LABELS, lambda form: form.questions, form_of.judge_question),
}


def _judge(work: Work, index: int, part: str, key: str, label: str) -> None:
    """Sets a label or takes it back, and moves on to the next open answer when this one is complete.  `key`: the label's."""
    all_units = [card.unit for card in cards(work)]
    unit = all_units[index]
    _, labels, set_label = PARTS[part]
    form = set_label(work.form, key, None if labels(work.form).get(key) == label else label)
    state.change(work, form)
    next_index = None if form_of.open_parts(form, unit) else form_of.next_open(form, all_units, index)
    work.current = index if next_index is None else next_index


def _label_rest(work: Work) -> None:
    """Labels all remaining answers correct, and their questions as fitting."""
    form: form_of.JudgingForm = work.form
    for card in cards(work):
        form = form if card.unit.key in form.labels else form_of.judge(form, card.unit.key, "correct")
        for key in card.questions:
            form = form if key in form.questions else form_of.judge_question(form, key, "fits")
    state.change(work, form)


def _move(work: Work, step: int) -> None:
    count = len(cards(work))
    work.current = (work.current + step) % count if count else 0


def _prefer(work: Work, preference: Preference) -> None:
    state.change(work, replace(work.form, preference=None if work.form.preference == preference else preference))


def _note_answer(work: Work, index: int, text: str) -> None:
    state.change(work, form_of.annotate(work.form, cards(work)[index].unit.key, text), typed=f"note.{index}")


def _missing(work: Work, line: int, text: str) -> None:
    lines = work.form.missing.splitlines()
    lines = [*lines, ""] if line >= len(lines) else lines
    lines[line] = " ".join(text.split())
    state.change(work, replace(work.form, missing="\n".join(lines)), typed=f"missing.{line}")


# ---------------------------------------------------------------- drawing


def legend(work: Work) -> keys.Keys:
    return (*keys.JUDGING, *(keys.COMPARING if compares(work) else ()))


def focus(work: Work) -> tuple[str, str, str]:
    """(key of the container that gets the focus, a token that is new when it moves there, key of the card to show with it)."""
    all_cards = cards(work)
    if not all_cards:
        return "", "", ""
    card = all_cards[work.current]
    open_parts = form_of.open_parts(work.form, card.unit)
    part = f"question.{_open_question(work, card)}" if open_parts == ("question",) else "answer"
    place = work.key(part, work.current)
    # not at each change: it would leave a text field while somebody types in it
    token = f"{work.task.item}.{place}.{len(work.form.labels)}.{len(work.form.questions)}"
    return place, token, work.key("card", work.current)


def _open_question(work: Work, card: Card) -> int:
    """The position of the question that the keys judge: the first without a label."""
    return next((n for n, key in enumerate(card.questions) if key not in work.form.questions), 0)


def draw(work: Work) -> None:
    if work.sheet is None:
        return
    all_cards = list(enumerate(cards(work)))
    remaining = sum(bool(form_of.open_parts(work.form, card.unit)) for _, card in all_cards)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(all_cards) - remaining} of {listed(len(all_cards), 'answer')} judged", width="content")
        work.button(
            "All others correct",
            ("rest",),
            _label_rest,
            shortcut=keys.ALL_OTHERS,
            disabled=not remaining,
            icon=":material/done_all:",
        )
        work.button(full_label("Next", "answer"), ("next",), _move, 1, shortcut=keys.NEXT, type="tertiary")
        work.button(full_label("Previous", "answer"), ("previous",), _move, -1, shortcut=keys.PREVIOUS, type="tertiary")
    sides = work.sheet.sides
    in_both = [(index, card) for index, card in all_cards if len(card.answers) > 1]
    if in_both:
        st.markdown("**In both sets**, from the same passages: one label counts for both")
    for index, card in in_both:
        _card(work, index, card)
    for side, column in zip(sides, st.columns(len(sides), gap="medium") if len(sides) > 1 else [st.container()]):
        with column:
            if len(sides) > 1:
                st.markdown(f"**Set {side.name.upper()}**")
                st.caption("; ".join(f"{index + 1}\\. {escape(card.text)}, see above" for index, card in in_both))
            if not side.answers:
                st.caption("This set is empty: the system found no answer.")
            for index, card in all_cards:
                if card.sides == (side,):
                    _card(work, index, card)
    if compares(work):
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
    elif len(sides) > 1:
        st.caption("Both sets have the same answers, so neither is better.")
    _missing_answers(work)
    submit_bar.note(work)
    for problem in problems(work) if work.has_tried else ():
        submit_bar.show_mistake(problem)


def _card(work: Work, index: int, card: Card) -> None:
    mark, name, unit = "", f"answer {index + 1}, {card.text}", card.unit
    if index == work.current:
        mark = ":orange-badge[:material/keyboard: keys apply here]"
    elif not form_of.open_parts(work.form, unit):
        mark = ":green[:material/done:]"
    with st.container(border=True, key=work.key("card", index)):
        st.markdown(f"{index + 1}\\. **{escape(card.text)}** {mark}")
        _passages(work, card)
        _label_buttons(work, index, "answer", unit.key, name, work.key("answer", index), index == work.current)
        _draw_error_labels(work, index, unit.key, name)
        for number, (key, question) in enumerate(card.questions.items()):
            st.markdown(changes(work.task.question, question))
            place = work.key(f"question.{number}", index)
            has_keys = index == work.current and number == _open_question(work, card)
            _label_buttons(work, index, "question", key, f"question {number + 1} of {name}", place, has_keys, number)
        label = full_label("Note" if unit.key not in work.form.notes else "Note ✓", f"on {name}")
        with st.popover(label, type="tertiary", key=work.key("note.open", index)):
            note = work.form.notes.get(unit.key, "")
            work.field(f"Note on answer {index + 1}", ("note", index), note, _note_answer, index)


def _label_buttons(work: Work, index: int, part: str, key: str, name: str, place: str, has_keys: bool, number: int = 0) -> None:
    """`key`: the label's.  `place`: the container's.  `number`: the question's, from 0."""
    choices, labels, _ = PARTS[part]
    with st.container(horizontal=True, key=place):
        for value, (label, shortcut) in choices.items():
            work.button(
                full_label(label, f"for {name}"),
                (part, index, *([number] if number else []), value),
                _judge,
                index,
                part,
                key,
                value,
                icon=ICONS[value],
                type="primary" if labels(work.form).get(key) == value else "secondary",
                shortcut=shortcut if has_keys else None,
            )


def _error_labels(work: Work, key: str) -> tuple[str, ...]:
    """Error labels of one answer, without those removed from the project.  `key`: of its unit."""
    return tuple(label for label in work.form.errors.get(key, ()) if label in work.project.error_labels)


def _draw_error_labels(work: Work, index: int, key: str, name: str) -> None:
    """`index`: position of the answer on the screen; `name`: read aloud."""
    if work.project.error_labels:
        st.pills(
            f"Errors of {name}",
            work.project.error_labels,
            selection_mode="multi",
            default=_error_labels(work, key),
            key=work.key("errors", index),
            label_visibility="collapsed",
            on_change=_choose_errors,
            args=(work, index, key),
        )


def _choose_errors(work: Work, index: int, key: str) -> None:
    """Callback."""
    labels = tuple(st.session_state.get(work.key("errors", index)) or ())
    errors = {k: v for k, v in {**work.form.errors, key: labels}.items() if v}
    state.change(work, replace(work.form, errors=errors))


def _passages(work: Work, card: Card) -> None:
    """Every passage that the answer was read from, in full, with the answer marked, because the proof may be in any of them."""
    passages, answer = {p.id: p for p in (work.sheet.passages if work.sheet else ())}, card.answers[0]
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
    """The passages that the systems read, beside the form."""
    with st.expander(f"All passages the systems read ({len(work.sheet.passages) if work.sheet else 0})"):
        for passage in work.sheet.passages if work.sheet else ():
            st.markdown(f"**{escape(passage.title or passage.id)}**")
            st.caption(escape(passage.text))
