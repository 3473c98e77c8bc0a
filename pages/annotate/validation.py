"""Validation: the union of several people's answers, each with its questions.  Their names are not shown here.

AmbigQA's authors did this in two steps, answers first; here an answer and its questions are one card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import streamlit as st

from core.annotating import checks, groups
from core.annotating.aliases import join_aliases, parse_aliases
from core.annotating.groups import Group, Sheet, Variant
from core.errors import AmbiscopeError
from pages.annotate import generation, place, search, state, submit_bar
from pages.annotate.state import Work
from pages.ui.markup import changes, escape, named
from storage.records.annotation import ValidationWork

KEYS = (
    ("1–9", "select an answer"),
    ("M", "combine the selected"),
    ("S", "separate the selected"),
    ("X", "delete the selected"),
)


def answers(work: Work) -> Iterator[str]:
    for group in work.form.groups:
        yield from group.aliases
    for suggestion in work.suggestions:
        yield suggestion.text


def content(work: Work) -> ValidationWork:
    sources = work.source.sources if work.source else ()
    return ValidationWork(groups.to_annotation(work.form), sources=sources)


def blocked(work: Work) -> bool:
    return bool(checks.errors(groups.to_annotation(work.form), work.task.question, opened_count=None))


# ---------------------------------------------------------------- callbacks


def _choose(work: Work, at: int) -> None:
    work.chosen ^= {at}


def _chosen(work: Work, what: str) -> None:
    sheet: Sheet = work.form

    def act() -> Sheet:
        if what == "combine":
            return groups.combine(sheet, work.chosen)
        if what == "delete":
            return groups.delete(sheet, work.chosen)
        changed = sheet
        for at in sorted(work.chosen, reverse=True):
            changed = groups.separate(changed, at)
        return changed

    before = work.form
    state.attempt(work, act)
    if work.form is not before:
        work.chosen.clear()


def _correct(work: Work, at: int, part: int, text: str) -> None:
    corrected = f"aliases.{at}.{part}"
    state.attempt(work, lambda: groups.correct(work.form, at, part, parse_aliases(text)), redraw=False, typed=corrected)


def _add(work: Work, text: str) -> None:
    if text.strip():
        state.attempt(work, lambda: groups.add(work.form, parse_aliases(text)))


def _restart(work: Work) -> None:
    work.chosen.clear()
    source = work.source
    if source is not None:
        state.attempt(work, lambda: groups.union(source.question, source.annotations))


def _toggle(work: Work, at: int, variant: Variant) -> None:
    act = groups.exclude if variant.included else groups.include
    state.attempt(work, lambda: act(work.form, at, variant.text))


def _edit(work: Work, at: int, number: int, text: str) -> None:
    """The field has the place of the wording in its key: the wording itself changes while it is typed."""
    texts = [variant.text for variant in work.form.groups[at].questions]
    if number < len(texts):
        old = texts.pop(number)
        merged = " ".join(text.split()) in texts  # they are one from now on: then the fields get new numbers
        typed = "" if merged else f"wording.{at}.{number}"
        state.attempt(work, lambda: groups.edit(work.form, at, old, text), redraw=merged, typed=typed)


def _ask(work: Work, at: int, text: str) -> None:
    if text.strip():
        state.attempt(work, lambda: groups.ask(work.form, at, text))


def _return(work: Work) -> None:
    whom = st.session_state.get(work.key("return.whom"))
    reason = str(st.session_state.get(work.key("return.reason")) or "").strip()
    try:
        place.store().returns.return_item(work.task.item, str(whom), "generation", reason, work.who)
        place.store().queue.release_item(work.task.item, work.who, work.stage)
    except AmbiscopeError as error:
        work.problem = error
        return
    st.session_state[submit_bar.MESSAGE] = "Sent back. The item waits for the new annotation."
    state.close()
    work.refresh = True


# ---------------------------------------------------------------- drawing


def draw(work: Work) -> None:
    sheet: Sheet = work.form
    _sources(work)
    found = generation.checked(work, groups.to_annotation(sheet), must_read=0)
    for at, group in enumerate(sheet.groups):
        with st.container(border=True, key=work.key("group", at)):
            _answer(work, at, group)
            if len(sheet.groups) > 1:
                _questions(work, at, group)
            submit_bar.show_findings(work, found, at)
    if not sheet.groups:
        st.info("The list is empty. If you submit now, you say that there is no answer.")
    submit_bar.show_findings(work, found, None)
    _new_field(work, "Add a missing answer", ("added",), "answer | another spelling", _add)
    count = len(work.chosen)
    with st.container(horizontal=True):
        for label, key, what, enough in (
            ("Combine", "M", "combine", count > 1),
            ("Separate", "S", "separate", any(len(sheet.groups[i].parts) > 1 for i in work.chosen if i < len(sheet.groups))),
            ("Delete", "X", "delete", count > 0),
        ):
            work.button(named(label, "the selected answers"), (what,), _chosen, what, shortcut=key, disabled=not enough)
        work.button("Start over", ("restart",), _restart, icon=":material/restart_alt:", type="tertiary")


def _new_field(
    work: Work, label: str, parts: tuple[object, ...], placeholder: str, do: Callable[..., None], *args: object
) -> None:
    """A field whose text is added with Enter.  Its key changes with the form, so that it is empty afterwards."""
    look = {"live": False, "label_visibility": "collapsed", "icon": ":material/add:"}
    work.field(label, parts, "", do, *args, placeholder=f"{label}: {placeholder}", **look)


def _people(work: Work) -> dict[str, str]:
    """Names as letters: who wrote what must not sway the validator."""
    names = [name for name, _ in work.source.annotations] if work.source else []
    return {name: chr(ord("A") + i % 26) for i, name in enumerate(names)}


def _sources(work: Work) -> None:
    people = _people(work)
    counts = []
    for name, annotation in work.source.annotations if work.source else ():
        count = len(annotation.pairs)
        kind = {"none": "no answer", "single": "a single answer"}.get(annotation.type, f"{count} answers")
        counts.append(f"{people[name]}: {kind}")
    line = st.container(horizontal=True, vertical_alignment="center")
    line.caption("Annotators: " + " · ".join(counts), width="content")
    with line.popover("Send an annotation back", icon=":material/reply:", key=work.key("return"), type="tertiary"):
        st.selectbox("Whose annotation?", list(people), format_func=lambda n: people[n], key=work.key("return.whom"))
        st.text_input("What should they change?", key=work.key("return.reason"), max_chars=500)
        work.button("Send back", ("return.it",), _return)


def _answer(work: Work, at: int, group: Group) -> None:
    people = _people(work)
    chosen = at in work.chosen
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button(
            f"Answer {at + 1}",
            ("choose", at),
            _choose,
            at,
            icon=":material/check_box:" if chosen else ":material/check_box_outline_blank:",
            type="primary" if chosen else "secondary",
            shortcut=str(at + 1) if at < 9 else None,
        )
        by = ", ".join(people.get(name, "?") for name in group.annotators) or "you"
        titles = "; ".join(escape(search.title(work, i)) for i in group.passage_ids)
        st.caption(f"from {by}{f' · :material/menu_book: {titles}' if titles else ''}", width="content")
    for number, part in enumerate(group.parts):
        # of several people's: whose words they are
        work.field(
            f"Answer {at + 1} as {people.get(part.by, 'you')} wrote it",
            ("aliases", at, number),
            join_aliases(part.aliases),
            _correct,
            at,
            number,
            label_visibility="visible" if len(group.parts) > 1 else "collapsed",
        )


def _questions(work: Work, at: int, group: Group) -> None:
    for number, variant in enumerate(group.questions):
        _wording(work, at, number, variant)
    if len(group.included) > 1:
        st.caption("More than one question is kept. The first one goes into the answer set.")
    _new_field(work, f"Another question for answer {at + 1}", ("asked", at), "press Enter to add it", _ask, at)


def _wording(work: Work, at: int, number: int, variant: Variant) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button(
            named("Kept" if variant.included else "Struck out", f"question {number + 1} of answer {at + 1}"),
            ("keep", at, number),
            _toggle,
            at,
            variant,
            icon=":material/check_box:" if variant.included else ":material/check_box_outline_blank:",
        )
        work.field(
            f"Question {number + 1} of answer {at + 1}",
            ("wording", at, number),
            variant.text,
            _edit,
            at,
            number,
            label_visibility="collapsed",
            disabled=not variant.included,
        )
    if variant.included:
        st.caption(changes(work.task.question, variant.text))
