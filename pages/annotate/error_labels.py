"""The error labels of a project, which a judge may give to an answer beside the built-in labels."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.annotate import state
from pages.annotate.state import Work


def labels_of(work: Work, key: str) -> tuple[str, ...]:
    """Error labels of one answer, without those removed from the project.  `key`: of its unit."""
    return tuple(label for label in work.form.errors.get(key, ()) if label in work.project.error_labels)


def draw(work: Work, index: int, key: str, name: str) -> None:
    """`index`: position of the answer on the screen; `name`: read aloud."""
    if work.project.error_labels:
        st.pills(
            f"Errors of {name}",
            work.project.error_labels,
            selection_mode="multi",
            default=labels_of(work, key),
            key=work.key("errors", index),
            label_visibility="collapsed",
            on_change=_choose,
            args=(work, index, key),
        )


def _choose(work: Work, index: int, key: str) -> None:
    """Callback."""
    labels = tuple(st.session_state.get(work.key("errors", index)) or ())
    errors = {k: v for k, v in {**work.form.errors, key: labels}.items() if v}
    state.change(work, replace(work.form, errors=errors))
