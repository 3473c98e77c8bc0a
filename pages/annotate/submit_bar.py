"""Below each form: what is saved, undo, skip, submit; and the message after submitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from core.annotating.checks import Finding
from pages.annotate import place, state
from pages.annotate.state import Feedback, Work
from pages.session import shared
from pages.session.actions import ERROR, reported
from pages.ui.keyboard import SUBMIT
from pages.ui.markup import escape
from storage.records.annotation import Content, SourcesChangedError, SubmissionConflictError
from storage.shipped import practice

LAST, MESSAGE, FEEDBACK = "annotate.last", "annotate.said", "annotate.feedback"
NEXT_ITEM, USER = "annotate.wanted", "annotate.who"  # the item to open, whose session this is
REASON_CHARS = 500


def leave(work: Work, text: str, can_reopen: bool = True) -> None:
    """Callback: closes the item with a message; the page draws the next one."""
    st.session_state[MESSAGE] = text
    if can_reopen:
        st.session_state[LAST] = (work.task.item, work.stage)
    _reload(work)


def _submit(work: Work, make: Callable[[Work], Content], blocked: Callable[[], bool]) -> None:
    """Callback.  The form is up to date: field callbacks of the same keystroke run first."""
    seconds = work.count_time()
    work.has_tried, work.problem = True, None
    if blocked():
        return
    expected = work.source.expected_version if work.source else work.task.version
    body = {**work.body(), "seconds": 0.0}  # if it is reopened, time counts from there
    submission = place.store().submissions.submit(
        work.task.item, work.user, work.stage, make(work), seconds=seconds, draft_body=body, expected_version=expected
    )
    if place.practising():
        feedback = practice.feedback(place.store(), work.task.item, work.user, work.stage, submission.content)
        st.session_state[FEEDBACK] = Feedback(work.task.question, submission.content, feedback)
    late = "" if submission.counted else " Others had already finished this item, so yours is kept but does not count."
    leave(work, f"Submitted.{late}")


def _skip(work: Work) -> None:
    reason = str(st.session_state.get(work.key("reason")) or "").strip()
    place.store().queue.skip_item(work.task.item, work.user, work.stage, reason)
    leave(work, "Skipped. Somebody else will get this item.")


def _reload(work: Work) -> None:
    """Callback: draws the page again from what is stored."""
    state.close()
    work.refresh = True


def belongs_to(user: str) -> None:
    """Called before anything is drawn.  Where the name changed, what the session keeps of the other person is forgotten."""
    if st.session_state.get(USER) not in (None, user):
        for key in (LAST, MESSAGE, FEEDBACK, ERROR, NEXT_ITEM):
            st.session_state.pop(key, None)
    st.session_state[USER] = user


@reported
def reopen() -> None:
    """Callback: undoes the last submission or skip of this session."""
    last = st.session_state.pop(LAST, None)  # also where it fails: it would fail again
    if not last or st.session_state.get(USER) != shared.annotator():
        return
    item, stage = last
    task = place.store().returns.undo(item, shared.annotator(), stage)
    st.session_state[NEXT_ITEM] = item
    earlier = " Your earlier version counts until you submit again." if task.state == "submitted" else ""
    st.session_state[MESSAGE] = f"Reopened.{earlier}"
    state.close()


def show_mistake(text: str) -> None:
    """What prevents submitting, where it is.  No caption: those are drawn pale."""
    st.markdown(f":red[:small[:material/error: {escape(text)}]]")


def show_findings(work: Work, findings: tuple[Sequence[Finding], Sequence[Finding]], pair: int | None, *fields: str) -> None:
    """Those of a pair (None: of the whole), and of these fields where some are given.  `findings`: what blocks, in red once somebody
    tried to submit, and what is doubtful, in orange."""
    wrong, doubtful = findings
    for finding in (*(wrong if work.has_tried else ()), *doubtful):
        if finding.pair != pair or (fields and finding.field not in fields):
            continue
        if finding in wrong:
            show_mistake(finding.message)
        else:
            st.caption(f":orange[:material/warning: {escape(finding.message)}]")


def _save_note(work: Work, text: str) -> None:
    state.change(work, replace(work.form, note=text), typed="note")


def note(work: Work) -> None:
    """A message to the manager, of a form that has `note`."""
    work.field("Note to the manager (optional)", ("note",), work.form.note, _save_note)


def draw(work: Work, make: Callable[[Work], Content], blocked: Callable[[], bool]) -> None:
    """`blocked`: errors prevent submitting; the form shows them."""
    state.show_problem(work)
    if isinstance(work.problem, (SubmissionConflictError, SourcesChangedError)):
        work.button("Reload item", ("reload",), _reload)
    if work.has_tried and blocked():
        st.error("Not submitted yet. Correct what is marked in red.", icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button("Submit", ("submit",), _submit, make, blocked, type="primary", shortcut=SUBMIT, icon=":material/send:")
        work.button("Undo", ("undo",), state.undo, shortcut="U", icon=":material/undo:", disabled=not work.history.before)
        with st.popover("Skip", icon=":material/skip_next:", key=work.key("skip")):
            st.text_input("Reason for skipping", key=work.key("reason"), max_chars=REASON_CHARS, live="300ms")
            work.button(
                "Skip this item", ("skip.it",), _skip, disabled=not str(st.session_state.get(work.key("reason")) or "").strip()
            )
        st.caption(escape(f"Draft saved {work.saved.astimezone():%H:%M:%S}" if work.saved else "Saved as you type"))


def after() -> None:
    """The message about the last item, and a way back to it."""
    if text := st.session_state.pop(MESSAGE, None):
        st.toast(escape(text), icon=":material/check:")
    if st.session_state.get(LAST):
        st.button("Reopen my last item", key="annotate.reopen", icon=":material/undo:", shortcut="Z", on_click=reopen)
