"""Validation: the union of several people's answers, each with its questions.  Their names are not shown here.

AmbigQA's authors did this in two steps, answers first; here an answer and its questions are one card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import streamlit as st

from core.annotating import checks, groups
from core.annotating.aliases import join_aliases, parse_aliases
from core.annotating.groups import Group, Sheet, Variant
from core.text import listed
from pages.annotate import generation, search, state, submit_bar
from pages.annotate.state import Work
from pages.session import place
from pages.ui import keys
from pages.ui.markup import changes, escape, full_label
from storage.records.annotation import ValidationWork

KEYS = keys.VALIDATION


def answers(work: Work) -> Iterator[str]:
    for group in work.form.groups:
        yield from group.aliases
    for suggestion in work.suggestions:
        yield suggestion.text


def content(work: Work) -> ValidationWork:
    sources = work.source.sources if work.source else ()
    return ValidationWork(groups.to_annotation(work.form), sources=sources)


def lines(work: Work, form: Sheet) -> list[str]:
    """A draft as text, for comparing two."""
    out = []
    for group in form.groups:
        out.append(f"Answer: {join_aliases(group.aliases)}")
        out += [f"Question: {question}" for question in group.included]
        out += [f"Passage: {search.title(work, passage)}" for passage in group.passage_ids]
    return out or ["No answer"]


def blocked(work: Work) -> bool:
    return bool(checks.errors(groups.to_annotation(work.form), work.task.question, opened_count=None))


# ---------------------------------------------------------------- callbacks


def _select(work: Work, index: int) -> None:
    work.selected ^= {index}


def _change_selected(work: Work, operation: Callable[[Sheet, set[int]], Sheet]) -> None:
    state.attempt(work, lambda: operation(work.form, work.selected))
    work.selected.clear()


def _separate(sheet: Sheet, indices: set[int]) -> Sheet:
    for index in sorted(indices, reverse=True):
        sheet = groups.separate(sheet, index)
    return sheet


def _correct(work: Work, index: int, part: int, text: str) -> None:
    field = f"aliases.{index}.{part}"
    state.attempt(work, lambda: groups.correct(work.form, index, part, parse_aliases(text)), redraw=False, typed=field)


def _add(work: Work, text: str) -> None:
    if text.strip():
        state.attempt(work, lambda: groups.add(work.form, parse_aliases(text)))


def _restart(work: Work) -> None:
    work.selected.clear()
    source = work.source
    if source is not None:
        state.attempt(work, lambda: groups.union(source.question, source.annotations))


def _toggle(work: Work, index: int, variant: Variant) -> None:
    act = groups.exclude if variant.included else groups.include
    state.attempt(work, lambda: act(work.form, index, variant.text))


def _edit(work: Work, index: int, number: int, text: str) -> None:
    """The field has the position of the wording in its key: the wording itself changes while it is typed."""
    texts = [variant.text for variant in work.form.groups[index].questions]
    if number < len(texts):
        old = texts.pop(number)
        merged = " ".join(text.split()) in texts  # they are one from now on: then the fields get new numbers
        typed = "" if merged else f"wording.{index}.{number}"
        state.attempt(work, lambda: groups.edit(work.form, index, old, text), redraw=merged, typed=typed)


def _ask(work: Work, index: int, text: str) -> None:
    if text.strip():
        state.attempt(work, lambda: groups.ask(work.form, index, text))


def _return(work: Work) -> None:
    annotator = str(st.session_state.get(work.key("return.whom")))
    reason = str(st.session_state.get(work.key("return.reason")) or "").strip()
    place.store().returns.return_item(work.task.item, annotator, "generation", reason, work.user)
    place.store().queue.release_item(work.task.item, work.user, work.stage)
    submit_bar.leave(work, "Sent back. The item waits for the new annotation.")


# ---------------------------------------------------------------- drawing


def draw(work: Work) -> None:
    sheet: Sheet = work.form
    _sources(work)
    findings = generation.findings_of(work, groups.to_annotation(sheet), must_read=0)
    for index, group in enumerate(sheet.groups):
        with st.container(border=True, key=work.key("group", index)):
            _answer(work, index, group)
            if len(sheet.groups) > 1:
                _questions(work, index, group)
            submit_bar.show_findings(work, findings, index)
    if not sheet.groups:
        st.info("The list is empty. If you submit now, you say that there is no answer.")
    submit_bar.show_findings(work, findings, None)
    _new_field(work, "Add a missing answer", ("added",), "answer | another spelling", _add)
    count = len(work.selected)
    can_separate = any(len(sheet.groups[i].parts) > 1 for i in work.selected if i < len(sheet.groups))
    with st.container(horizontal=True):
        for word, key, operation, is_enabled in (
            ("Combine", keys.COMBINE, groups.combine, count > 1),
            ("Separate", keys.SEPARATE, _separate, can_separate),
            ("Delete", keys.DELETE, groups.delete, count > 0),
        ):
            label = full_label(word, "the selected answers")
            work.button(label, (word.lower(),), _change_selected, operation, shortcut=key, disabled=not is_enabled)
        work.button("Start over", ("restart",), _restart, icon=":material/restart_alt:", type="tertiary")


def _new_field(
    work: Work, label: str, parts: tuple[object, ...], placeholder: str, do: Callable[..., None], *args: object
) -> None:
    """A field whose text is added with Enter.  Its key changes with the form, so that it is empty afterwards."""
    look = {"live": False, "label_visibility": "collapsed", "icon": ":material/add:"}
    work.field(label, parts, "", do, *args, placeholder=f"{label}: {placeholder}", **look)


def _people(work: Work) -> dict[str, str]:
    """Names as letters, because the authors' names must not influence the validator."""
    names = [name for name, _ in work.source.annotations] if work.source else []
    return {name: chr(ord("A") + i % 26) for i, name in enumerate(names)}


def _sources(work: Work) -> None:
    people = _people(work)
    counts = []
    for name, annotation in work.source.annotations if work.source else ():
        kinds = {"none": "no answer", "single": "a single answer"}
        counts.append(f"{people[name]}: {kinds.get(annotation.type, listed(len(annotation.pairs), 'answer'))}")
    line = st.container(horizontal=True, vertical_alignment="center")
    line.caption("Annotators: " + " · ".join(counts), width="content")
    with line.popover("Send an annotation back", icon=":material/reply:", key=work.key("return"), type="tertiary"):
        st.selectbox("Whose annotation?", list(people), format_func=lambda n: people[n], key=work.key("return.whom"))
        st.text_input("What should they change?", key=work.key("return.reason"), max_chars=500)
        work.button("Send back", ("return.it",), _return)


def _answer(work: Work, index: int, group: Group) -> None:
    people = _people(work)
    is_selected = index in work.selected
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button(
            f"Answer {index + 1}",
            ("choose", index),
            _select,
            index,
            icon=":material/check_box:" if is_selected else ":material/check_box_outline_blank:",
            type="primary" if is_selected else "secondary",
            shortcut=keys.SELECT[index] if index < len(keys.SELECT) else None,
        )
        authors = ", ".join(people.get(name, "?") for name in group.annotators) or "you"
        titles = "; ".join(escape(search.title(work, i)) for i in group.passage_ids)
        st.caption(f"from {authors}{f' · :material/menu_book: {titles}' if titles else ''}", width="content")
    for number, part in enumerate(group.parts):
        work.field(
            f"Answer {index + 1} as {people.get(part.by, 'you')} wrote it",
            ("aliases", index, number),
            join_aliases(part.aliases),
            _correct,
            index,
            number,
            label_visibility="visible" if len(group.parts) > 1 else "collapsed",
        )


def _questions(work: Work, index: int, group: Group) -> None:
    for number, variant in enumerate(group.questions):
        _wording(work, index, number, variant)
    if len(group.included) > 1:
        st.caption("More than one question is kept. The first one goes into the answer set.")
    _new_field(work, f"Another question for answer {index + 1}", ("asked", index), "press Enter to add it", _ask, index)


def _wording(work: Work, index: int, number: int, variant: Variant) -> None:
    name = f"question {number + 1} of answer {index + 1}"
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button(
            full_label("Kept" if variant.included else "Struck out", name),
            ("keep", index, number),
            _toggle,
            index,
            variant,
            icon=":material/check_box:" if variant.included else ":material/check_box_outline_blank:",
        )
        work.field(
            name.capitalize(),
            ("wording", index, number),
            variant.text,
            _edit,
            index,
            number,
            label_visibility="collapsed",
            disabled=not variant.included,
        )
    if variant.included:
        st.caption(changes(work.task.question, variant.text))
