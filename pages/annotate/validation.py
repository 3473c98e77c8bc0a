"""Validation: the union of several people's answers, in the two steps of AmbigQA's authors.  Their names are not shown here."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from core.annotating import checks, groups
from core.annotating.aliases import join_aliases, parse_aliases
from core.annotating.groups import Group, Sheet, Variant
from core.errors import AmbiscopeError
from pages.annotate import place, search, state, submit_bar
from pages.annotate.state import Work
from pages.ui.keyboard import SUBMIT, capture_keys, legend
from pages.ui.markup import changes, escape, named
from storage.records.annotation import ValidationWork

KEYS_1 = (
    ("1–9", "select an answer"),
    ("M", "combine the selected"),
    ("S", "separate the selected"),
    ("X", "delete the selected"),
    ("U", "undo"),
    ("B", "back to the results"),
    (SUBMIT, "go to step 2, or submit"),
)
KEYS_2 = (("1–9", "keep or strike out a question"), ("Q", "back to step 1"), ("U", "undo"), (SUBMIT, "submit"))


def answers(work: Work) -> Iterator[str]:
    for group in work.form.groups:
        yield from group.aliases


def content(work: Work) -> ValidationWork:
    sources = work.source.sources if work.source else ()
    return ValidationWork(groups.to_annotation(work.form), sources=sources)


def errors(work: Work) -> tuple[checks.Finding, ...]:
    return checks.errors(groups.to_annotation(work.form), work.task.question, opened=None)


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


def _separate(work: Work, at: int) -> None:
    work.chosen.clear()
    state.attempt(work, lambda: groups.separate(work.form, at))


def _correct(work: Work, at: int, part: int) -> None:
    text = str(st.session_state.get(work.key("aliases", at, part)) or "")
    work.problem = None
    try:
        form = groups.correct(work.form, at, part, parse_aliases(text))
    except AmbiscopeError as error:
        work.problem = error
        return
    state.change(work, form, typed=f"aliases.{at}.{part}")


def _add(work: Work) -> None:
    text = str(st.session_state.pop(work.key("added"), "") or "")
    state.attempt(work, lambda: groups.add(work.form, parse_aliases(text)))


def _restart(work: Work) -> None:
    work.chosen.clear()
    source = work.source
    if source is not None:
        state.attempt(work, lambda: groups.union(source.question, source.annotations))


def _step(work: Work, number: int) -> None:
    work.step, work.tried, work.problem = number, False, None
    work.chosen.clear()


def _toggle(work: Work, at: int, variant: Variant) -> None:
    act = groups.exclude if variant.included else groups.include
    state.attempt(work, lambda: act(work.form, at, variant.text))


def _edit(work: Work, at: int, number: int) -> None:
    """The field has the place of the wording in its key: the wording itself changes while it is typed."""
    questions = work.form.groups[at].questions
    text = str(st.session_state.get(work.key("wording", at, number)) or "")
    if number < len(questions):
        work.problem = None
        try:
            form = groups.edit(work.form, at, questions[number].text, text)
        except AmbiscopeError as error:
            work.problem = error
            return
        # two wordings that become equal are one from now on: then the fields are numbered anew
        merged = len(form.groups[at].questions) != len(questions)
        state.change(work, form, typed="" if merged else f"wording.{at}.{number}", redraw=merged)


def _ask(work: Work, at: int) -> None:
    text = str(st.session_state.pop(work.key("asked", at), "") or "")
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


@st.fragment
def pane(work: Work) -> None:
    if work.refresh:
        work.refresh = False
        st.rerun()
    sheet: Sheet = work.form
    if work.step == 2 and len(sheet.groups) < 2:
        work.step = 1
    if work.source is not None:
        _sources(work)
    if work.step == 1:
        _step_1(work, sheet)
    else:
        _step_2(work, sheet)


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
    st.caption("Annotators: " + " · ".join(counts))
    with st.popover("Send an annotation back", icon=":material/reply:", key=work.key("return"), type="tertiary"):
        st.selectbox("Whose annotation?", list(people), format_func=lambda n: people[n], key=work.key("return.whom"))
        st.text_input("What should they change?", key=work.key("return.reason"), max_chars=500, live="300ms")
        work.button(
            "Send back",
            ("return.it",),
            _return,
            disabled=not str(st.session_state.get(work.key("return.reason")) or "").strip(),
        )


def _step_1(work: Work, sheet: Sheet) -> None:
    st.markdown(
        "**Step 1 of 2: the answers.** Edit them in their fields. Select answers to combine, separate or delete them with the buttons below."
    )
    for at, group in enumerate(sheet.groups):
        _answer(work, at, group)
    if not sheet.groups:
        st.info("No answer is left. If you submit now, you say that there is no answer.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Add a missing answer", key=work.key("added"), placeholder="answer | alias", max_chars=state.MAX_FIELD_CHARS
        )
        work.button(named("Add", "the missing answer"), ("add",), _add)
    count = len(work.chosen)
    with st.container(horizontal=True):
        for label, key, what, enough in (
            ("Combine", "M", "combine", count > 1),
            ("Separate", "S", "separate", any(len(sheet.groups[i].parts) > 1 for i in work.chosen if i < len(sheet.groups))),
            ("Delete", "X", "delete", count > 0),
        ):
            work.button(named(label, "the selected answers"), (what,), _chosen, what, shortcut=key, disabled=not enough)
        work.button("Start over", ("restart",), _restart, icon=":material/restart_alt:", type="tertiary")
    if len(sheet.groups) > 1:
        state.show_problem(work)
        with st.container(horizontal=True, vertical_alignment="center"):
            work.button("Go to step 2", ("to2",), _step, 2, type="primary", shortcut=SUBMIT)
            submit_bar.undo_button(work)
            st.caption(escape(state.saved_line(work)))
    else:
        submit_bar.actions(work, make=content, blocked=lambda: bool(errors(work)))
    legend(KEYS_1)
    capture_keys(state.on_screen(work))


def _answer(work: Work, at: int, group: Group) -> None:
    people = _people(work)
    chosen = at in work.chosen
    with st.container(border=True, key=work.key("group", at)):
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
            by = ", ".join(people.get(name, "?") for name in group.by) or "you"
            st.caption(f"from {by}", width="content")
            if len(group.parts) > 1:
                work.button(
                    named("Separate", f"answer {at + 1}"),
                    ("separate", at),
                    _separate,
                    at,
                    icon=":material/call_split:",
                    type="tertiary",
                )
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
        if group.passage_ids:
            titles = "; ".join(escape(search.title(work, i)) for i in group.passage_ids)
            st.caption(f":material/menu_book: {titles}")
        with st.expander(named(f"Questions ({len(group.questions)})", f"of answer {at + 1}")):
            for variant in group.questions:
                st.markdown(changes(work.task.question, variant.text))


def _step_2(work: Work, sheet: Sheet) -> None:
    st.markdown(
        "**Step 2 of 2: the questions.** Keep the best wording for each answer, edit it lightly, and strike out the others."
    )
    wrong = errors(work) if work.tried else ()
    doubtful = checks.doubts(
        groups.to_annotation(sheet),
        work.task.question,
        reference_date=work.project.reference_date,
        alias_words=int(work.project.thresholds.get("alias_words", 7)),
    )
    shortcut = 0
    for at, group in enumerate(sheet.groups):
        with st.container(border=True, key=work.key("asking", at)):
            st.markdown(f"**{escape(join_aliases(group.aliases))}**")
            for number, variant in enumerate(group.questions):
                shortcut += 1
                _wording(work, at, number, variant, str(shortcut) if shortcut < 10 else None)
            if len(group.included) > 1:
                st.caption("More than one wording is kept. The first one goes into the answer set.")
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.text_input(
                    f"Another question for answer {at + 1}",
                    key=work.key("asked", at),
                    max_chars=state.MAX_FIELD_CHARS,
                    label_visibility="collapsed",
                    placeholder="Another wording",
                )
                work.button(named("Add", f"a question for answer {at + 1}"), ("ask", at), _ask, at)
            for finding in (f for f in (*wrong, *doubtful) if f.pair == at):
                if finding in wrong:
                    submit_bar.show_mistake(finding.message)
                else:
                    st.caption(f":orange[:material/warning: {escape(finding.message)}]")
    work.button("Back to step 1", ("to1",), _step, 1, shortcut="Q", type="tertiary")
    submit_bar.actions(work, make=content, blocked=lambda: bool(errors(work)))
    legend(KEYS_2)
    capture_keys(state.on_screen(work))


def _wording(work: Work, at: int, number: int, variant: Variant, shortcut: str | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button(
            named("Kept" if variant.included else "Struck out", f"question {number + 1} of answer {at + 1}"),
            ("keep", at, number),
            _toggle,
            at,
            variant,
            icon=":material/check_box:" if variant.included else ":material/check_box_outline_blank:",
            shortcut=shortcut,
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
