"""Below each form: the state of the draft, undo, skip, submit, and the message after submitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.annotating.checks import Finding
from core.text import clock_text
from pages.annotate import state
from pages.annotate.state import Feedback, Work
from pages.session import place, shared
from pages.session.actions import ERROR, reported
from pages.ui.keyboard import SUBMIT
from pages.ui.keys import REOPEN, SKIP, UNDO
from pages.ui.markup import escape
from storage.records.annotation import Content, SourcesChangedError, SubmissionConflictError, Task
from storage.records.projects import Project
from storage.shipped import practice

MESSAGE, FEEDBACK = "annotate.said", "annotate.feedback"
FINAL_KEY = "annotate.final"  # what could not be reopened
NEXT_ITEM, USER = "annotate.wanted", "annotate.who"  # the item to open, whose session this is
REASON_CHARS = 500


def leave(work: Work, text: str) -> None:
    """Callback: closes the item with a message; the page draws the next one."""
    st.session_state[MESSAGE] = text
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
        st.session_state[FEEDBACK] = Feedback(work.task.item, work.stage, work.task.question, submission.content, feedback)
    late = "" if submission.counted else " Others had already finished this item, so yours is kept but does not count."
    leave(work, f"Submitted.{late}")


def _ask_reason(work: Work) -> None:
    """Callback: shows the field for the reason, or hides it."""
    st.session_state[work.key("skipping")] = not st.session_state.get(work.key("skipping"))


def _skip(work: Work) -> None:
    reason = str(st.session_state.get(work.key("reason")) or "").strip()
    place.store().queue.skip_item(work.task.item, work.user, work.stage, reason)
    leave(work, "Skipped. Somebody else will get this item.")


def _reload(work: Work) -> None:
    """Callback: draws the page again from what is stored."""
    state.close()
    work.refresh = True


def belongs_to(user: str) -> None:
    """Called before anything is drawn.  If the name changed, the session's data of the other person is cleared."""
    if st.session_state.get(USER) not in (None, user):
        for key in (FINAL_KEY, MESSAGE, FEEDBACK, ERROR, NEXT_ITEM):
            st.session_state.pop(key, None)
    st.session_state[USER] = user


@reported
def reopen(task: Task) -> None:
    """Callback: undoes somebody's last submission or skip."""
    user = shared.annotator()
    if st.session_state.get(USER) != user:
        return
    final: set[tuple[str, str]] = st.session_state.setdefault(FINAL_KEY, set())
    final.add((task.item, task.stage))  # also where it fails: it would fail again
    task = place.store().returns.undo(task.item, user, task.stage)
    final.discard((task.item, task.stage))
    st.session_state[NEXT_ITEM], st.session_state[f"annotate.stage.{task.project}"] = task.item, task.stage
    earlier = " Your earlier version counts until you submit again." if task.state == "submitted" else ""
    st.session_state[MESSAGE] = f"Reopened.{earlier}"
    state.close()


def show_mistake(text: str) -> None:
    """Shows beside its field why submitting is blocked.  It isn't a caption, because those are drawn pale."""
    st.markdown(f":red[:small[:material/error: {escape(text)}]]")


def show_findings(work: Work, findings: tuple[Sequence[Finding], Sequence[Finding]], pair: int | None, *fields: str) -> None:
    """The findings of a pair (None: of the whole), restricted to these fields if some are given.  `findings`: blocking ones, in
    red once somebody tried to submit, and doubts, in orange."""
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
    """A field for a message to the manager, for a form that has `note`."""
    work.field("Note to the manager (optional)", ("note",), work.form.note, _save_note)


def draw(
    work: Work, make: Callable[[Work], Content], blocked: Callable[[], bool], lines: Callable[[Work, Any], list[str]]
) -> None:
    """`blocked`: errors prevent submitting, and the form shows them.  `lines`: a draft as text."""
    state.show_problem(work, lines)
    if isinstance(work.problem, (SubmissionConflictError, SourcesChangedError)):
        work.button("Reload item", ("reload",), _reload)
    if work.has_tried and blocked():
        st.error("Not submitted yet. Correct the parts marked in red.", icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center"):
        work.button("Submit", ("submit",), _submit, make, blocked, type="primary", shortcut=SUBMIT, icon=":material/send:")
        work.button("Undo", ("undo",), state.undo, shortcut=UNDO, icon=":material/undo:", disabled=not work.history.before)
        work.button("Skip", ("skip",), _ask_reason, shortcut=SKIP, icon=":material/skip_next:")
        st.caption(escape(f"Draft saved {clock_text(work.saved)}" if work.saved else "Saved as you type"))
    if st.session_state.get(work.key("skipping")):
        _draw_reason(work)


def _draw_reason(work: Work) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Reason for skipping", key=work.key("reason"), max_chars=REASON_CHARS, live="300ms")
        has_reason = bool(str(st.session_state.get(work.key("reason")) or "").strip())
        work.button("Skip this item", ("skip.it",), _skip, disabled=not has_reason)


def focus(work: Work) -> tuple[str, str]:
    """(key of the field that gets the focus, a token that changes when it moves there); empty while nobody skips."""
    return (work.key("reason"), work.key("skipping")) if st.session_state.get(work.key("skipping")) else ("", "")


def after(project: Project) -> None:
    """The message about the last item and a way back to it, also after a reload."""
    if text := st.session_state.pop(MESSAGE, None):
        st.toast(escape(text), icon=":material/check:")
    last = place.store().queue.last_finished(project.id, shared.annotator())
    if last is not None and (last.item, last.stage) not in st.session_state.get(FINAL_KEY, ()):
        st.button(
            "Reopen my last item", key="annotate.reopen", icon=":material/undo:", shortcut=REOPEN, on_click=reopen, args=(last,)
        )
