"""A person's judgment of each answer, saved at once.  What is shown comes from the store at every drawing; widgets only carry changes."""

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


def _key(prediction_id: str, position: int, what: str) -> str:
    return f"label.{prediction_id}.{position}.{what}"


def load(prediction_id: str) -> dict[int, list[Judgment]]:
    """All judgments of a prediction by position.  Raises StorageError."""
    by_position: dict[int, list[Judgment]] = {}
    for judgment in shared.store().labels.judgments(prediction_id):
        by_position.setdefault(judgment.position, []).append(judgment)
    return by_position


def _save(prediction_id: str, position: int, version: int) -> None:
    """Callback of both widgets: stores what they show, made from the version that was shown."""
    state = st.session_state
    label = state.get(_key(prediction_id, position, "choice"))
    note = str(state.get(_key(prediction_id, position, "note")) or "").strip()
    _store(prediction_id, position, label, note, version)


@reported
def _store(prediction_id: str, position: int, label: str | None, note: str, version: int) -> None:
    """What another window changed meanwhile stays, and the error names both."""
    store, who = shared.store(), shared.annotator()
    if label is None and not note:
        store.labels.clear_judgment(prediction_id, position, who, expected_version=version)
    else:
        state = "submitted" if label else "draft"
        store.labels.judge(prediction_id, position, who, label, note, state, expected_version=version)  # type: ignore[arg-type]


def take_back(prediction_id: str, label: str) -> None:
    """Removes this label of the current annotator wherever it is, and keeps their notes.  Raises StorageError."""
    for position, judgments in load(prediction_id).items() if prediction_id else ():
        for own in (j for j in judgments if j.annotator == shared.annotator() and j.verdict == label):
            _store(prediction_id, position, None, own.note, own.version)


def label_added(prediction_id: str, positions: Iterable[int]) -> None:
    """As correct, where the annotator has not labelled them and may label."""
    for position in positions:
        with suppress(AmbiscopeError):  # a label of another window stays; the correction itself goes on in any case
            shared.store().labels.judge(prediction_id, position, shared.annotator(), "correct", expected_version=0)


def controls(prediction_id: str, position: int, judgments: list[Judgment], side: str = "") -> None:
    """Label and note of the current annotator.  `side`: where two predictions are compared, which one it is."""
    own = next((j for j in judgments if j.annotator == shared.annotator()), None)
    choice, note = _key(prediction_id, position, "choice"), _key(prediction_id, position, "note")
    # the store's word goes before a widget's: another tab may have changed it; this tab's change was stored by its callback
    st.session_state[choice] = own.verdict if own else None
    st.session_state[note] = own.note if own else ""
    version = own.version if own else 0
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
    with st.popover(
        full_label("Note" if not (own and own.note) else "Note ✓", f"on answer {position + 1}{side}"),
        icon=":material/edit_note:",
    ):
        st.text_area(
            f"Note on answer {position + 1}{side}",
            key=note,
            max_chars=MAX_NOTE,
            on_change=_save,
            args=(prediction_id, position, version),
        )


def below(judgments: list[Judgment]) -> None:
    """The note, and what others said."""
    mine = shared.annotator()
    others = []
    for j in judgments:
        note = f" ({escape(short(j.note, 200))})" if j.note else ""
        if j.annotator == mine and j.note:
            st.caption(f"Your note: {escape(j.note)}")
        elif j.annotator != mine and j.state == "submitted":
            others.append(f"{escape(j.annotator)}: **{j.verdict or 'no label'}**{note}")
    if others:
        st.caption("Other people's labels: " + "; ".join(others))
