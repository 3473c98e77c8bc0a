"""A person's judgment of each answer, saved at once.  Every drawing reads the store; widgets only report changes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import streamlit as st

from core.annotating.labels import LABELS
from core.errors import AmbiscopeError
from pages.session import shared
from pages.session.actions import reported
from pages.ui.markup import escape, full_label, short
from storage.records.results import Judgment

MAX_NOTE = 2_000
HELP = (
    "Correct: it answers the question, and the passage says so. Wrong: it does not answer the question; it is struck out, and excluded when "
    "you continue. Choose the label again to take it back. Unsupported: it may be true, but the passage does not say so. Duplicate: the "
    "same as another answer. Outdated: right once, but a newer document says otherwise. Contradicts: another document says otherwise, and "
    "nothing tells which is right."
)
WORDS = {"wrong": "Wrong: strike out"}


def _key(prediction_id: str, position: int, widget: str) -> str:
    return f"label.{prediction_id}.{position}.{widget}"


def load(prediction_id: str) -> dict[int, list[Judgment]]:
    """All judgments of a prediction by position.  Raises StorageError."""
    by_position: dict[int, list[Judgment]] = {}
    for judgment in shared.store().labels.judgments(prediction_id):
        by_position.setdefault(judgment.position, []).append(judgment)
    return by_position


def mine(judgments: Iterable[Judgment]) -> Judgment | None:
    """The user's own, of the judgments of one answer."""
    user = shared.annotator()
    return next((j for j in judgments if j.annotator == user), None)


def _save(prediction_id: str, position: int, version: int) -> None:
    """Callback of both widgets: stores their values.  `version`: that of the judgment that they were drawn from."""
    state = st.session_state
    label = state.get(_key(prediction_id, position, "choice"))
    note = str(state.get(_key(prediction_id, position, "note")) or "").strip()
    _store(prediction_id, position, label, note, version)


@reported
def _store(prediction_id: str, position: int, label: str | None, note: str, version: int) -> None:
    """Stores a label.  A change made meanwhile in another window stays, and the error names both."""
    store, user = shared.store(), shared.annotator()
    if label is None and not note:
        store.labels.clear_judgment(prediction_id, position, user, expected_version=version)
    else:
        state = "submitted" if label else "draft"
        store.labels.judge(prediction_id, position, user, label, note, state, expected_version=version)  # type: ignore[arg-type]


def take_back(prediction_id: str, label: str) -> None:
    """Removes this label of the user from all answers, and keeps their notes.  Raises StorageError."""
    for position, judgments in load(prediction_id).items() if prediction_id else ():
        if (judgment := mine(judgments)) and judgment.verdict == label:
            _store(prediction_id, position, None, judgment.note, judgment.version)


def label_added(prediction_id: str, positions: Iterable[int]) -> None:
    """Labels as correct the answers that the user hasn't labelled yet, if they may label."""
    for position in positions:
        with suppress(AmbiscopeError):  # a label of another window stays; the correction itself continues in any case
            shared.store().labels.judge(prediction_id, position, shared.annotator(), "correct", expected_version=0)


def controls(prediction_id: str, position: int, judgments: list[Judgment], side: str = "") -> None:
    """The user's label and note.  `side`: which prediction it is if two are compared."""
    judgment = mine(judgments)
    choice, note = _key(prediction_id, position, "choice"), _key(prediction_id, position, "note")
    # the stored value overrides a widget's: another tab may have changed it; this tab's change was stored by its callback
    st.session_state[choice] = judgment.verdict if judgment else None
    st.session_state[note] = judgment.note if judgment else ""
    version = judgment.version if judgment else 0
    st.segmented_control(
        f"Label of answer {position + 1}{side}",
        LABELS,
        format_func=lambda label: WORDS.get(label, label.capitalize()),
        key=choice,
        on_change=_save,
        args=(prediction_id, position, version),
        label_visibility="collapsed",
        help=HELP,
        wrap=True,
    )
    word = "Note ✓" if judgment and judgment.note else "Note"
    with st.popover(full_label(word, f"on answer {position + 1}{side}"), icon=":material/edit_note:"):
        st.text_area(
            f"Note on answer {position + 1}{side}",
            key=note,
            max_chars=MAX_NOTE,
            on_change=_save,
            args=(prediction_id, position, version),
        )


def below(judgments: list[Judgment]) -> None:
    """The user's note, and the labels of others."""
    judgment, others = mine(judgments), []
    if judgment and judgment.note:
        st.caption(f"Your note: {escape(judgment.note)}")
    for j in judgments:
        if j is not judgment and j.state == "submitted":
            note = f" ({escape(short(j.note, 200))})" if j.note else ""
            others.append(f"{escape(j.annotator)}: **{j.verdict or 'no label'}**{note}")
    if others:
        st.caption("Other people's labels: " + "; ".join(others))
