"""Below each form: what is saved, undo, skip, submit; and what is said after submitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from core.annotating.checks import Finding
from core.errors import AmbiscopeError
from pages.annotate import place, practising, state
from pages.annotate.state import Feedback, Work
from pages.session import shared
from pages.session.actions import ERROR
from pages.ui.keyboard import SUBMIT
from pages.ui.markup import escape
from storage.records.annotation import Content, SourcesChangedError, SubmissionConflictError

LAST, MESSAGE, FEEDBACK = "annotate.last", "annotate.said", "annotate.feedback"
WANTED, WHO = "annotate.wanted", "annotate.who"
REASON_CHARS = 500


def _leave(work: Work, text: str) -> None:
    """The item is done with: the page draws the next one."""
    st.session_state[MESSAGE] = text
    st.session_state[LAST] = (work.task.item, work.stage)
    state.close()
    work.refresh = True


def _submit(work: Work, make: Callable[[Work], Content], blocked: Callable[[], bool]) -> None:
    """Callback.  What is typed was taken over before: field callbacks of the same keystroke run first."""
    spent = work.count_time()
    work.tried, work.problem = True, None
    if blocked():
        return
    expected = work.source.expected_version if work.source else work.task.version
    body = {**work.body(), "seconds": 0.0}  # if it is reopened, time counts from there
    try:
        sent = place.store().submissions.submit(
            work.task.item, work.who, work.stage, make(work), seconds=spent, draft_body=body, expected_version=expected
        )
    except AmbiscopeError as error:
        work.problem = error
        return
    if (compared := practising.feedback(work, sent.content)) is not None:
        st.session_state[FEEDBACK] = Feedback(work.task.question, sent.content, compared)
    late = "" if sent.counted else " Others had already finished this item, so yours is kept but does not count."
    _leave(work, f"Submitted.{late}")


def _skip(work: Work) -> None:
    reason = str(st.session_state.get(work.key("reason")) or "").strip()
    try:
        place.store().queue.skip_item(work.task.item, work.who, work.stage, reason)
    except AmbiscopeError as error:
        work.problem = error
        return
    _leave(work, "Skipped. Somebody else will get this item.")


def _reload(work: Work) -> None:
    """After a conflict: the item as it is stored now; this window's form stays as the step before, for undo."""
    state.close()
    work.refresh = True


def belongs_to(who: str) -> None:
    """Called before anything is drawn.  Where the name changed, what the session keeps of the other person is forgotten."""
    before = st.session_state.get(WHO)
    if before not in (None, who):
        for key in (LAST, MESSAGE, FEEDBACK, ERROR, WANTED, "annotate.mine.page"):
            st.session_state.pop(key, None)
    st.session_state[WHO] = who


def reopen() -> None:
    """Callback: undoes the last submission or skip of this session."""
    last = st.session_state.get(LAST)
    if not last or st.session_state.get(WHO) != shared.annotator():
        return
    item, stage = last
    try:
        place.store().returns.undo(item, shared.annotator(), stage)
    except AmbiscopeError as error:
        st.session_state[ERROR] = error
        st.session_state[LAST] = None  # it would fail again
        return
    st.session_state[LAST] = None
    st.session_state[WANTED] = item
    st.session_state[MESSAGE] = "Reopened."
    state.close()


def show_mistake(text: str) -> None:
    """What stands in the way of submitting, where it is.  No caption: those are drawn pale."""
    st.markdown(f":red[:small[:material/error: {escape(text)}]]")


def show_findings(work: Work, findings: tuple[Sequence[Finding], Sequence[Finding]], pair: int | None, *fields: str) -> None:
    """Those of a pair (None: of the whole), and of these fields where some are named.  `findings`: what blocks, in red once somebody
    tried to submit, and what is doubtful, in orange."""
    wrong, doubtful = findings
    for finding in (*(wrong if work.tried else ()), *doubtful):
        if finding.pair != pair or (fields and finding.field not in fields):
            continue
        if finding in wrong:
            show_mistake(finding.message)
        else:
            st.caption(f":orange[:material/warning: {escape(finding.message)}]")


def _noted(work: Work, text: str) -> None:
    state.change(work, replace(work.form, note=text), typed="note")


def note(work: Work) -> None:
    """A word to the manager, of a form that has `note`."""
    work.field("Note to the manager (optional)", ("note",), work.form.note, _noted)


def draw(work: Work, make: Callable[[Work], Content], blocked: Callable[[], bool]) -> None:
    """`blocked`: errors prevent submitting; the form shows them."""
    state.show_problem(work)
    if isinstance(work.problem, (SubmissionConflictError, SourcesChangedError)):
        work.button("Reload item", ("reload",), _reload)
    if work.tried and blocked():
        st.error("Not submitted yet. Correct what is marked in red.", icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button("Submit", ("submit",), _submit, make, blocked, type="primary", shortcut=SUBMIT, icon=":material/send:")
        work.button("Undo", ("undo",), state.undo, shortcut="U", icon=":material/undo:", disabled=not work.history.before)
        with st.popover("Skip", icon=":material/skip_next:", key=work.key("skip")):
            st.text_input("Reason for skipping", key=work.key("reason"), max_chars=REASON_CHARS, live="300ms")
            work.button(
                "Skip this item", ("skip.it",), _skip, disabled=not str(st.session_state.get(work.key("reason")) or "").strip()
            )
        st.caption(escape(state.saved_line(work)))


def after() -> None:
    """What became of the last item, and a way back to it."""
    if text := st.session_state.pop(MESSAGE, None):
        st.toast(escape(text), icon=":material/check:")
    if st.session_state.get(LAST):
        st.button("Reopen my last item", key="annotate.reopen", icon=":material/undo:", shortcut="Z", on_click=reopen)
