"""The error labels of a project, which a judge may give to an answer beside ours."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.annotate import state
from pages.annotate.state import Work


def chosen(work: Work, key: str) -> tuple[str, ...]:
    """Of one answer, without those that the project has no more.  `key`: of its unit."""
    return tuple(label for label in work.form.errors.get(key, ()) if label in work.project.error_labels)


def draw(work: Work, at: int, key: str, name: str) -> None:
    """`at`: the place of the answer on the screen, `name`: what it is called aloud."""
    if work.project.error_labels:
        st.pills(
            f"Errors of {name}",
            work.project.error_labels,
            selection_mode="multi",
            default=chosen(work, key),
            key=work.key("errors", at),
            label_visibility="collapsed",
            on_change=_choose,
            args=(work, at, key),
        )


def _choose(work: Work, at: int, key: str) -> None:
    """Callback."""
    labels = tuple(st.session_state.get(work.key("errors", at)) or ())
    rest = {k: v for k, v in work.form.errors.items() if k != key}
    state.change(work, replace(work.form, errors={**rest, key: labels} if labels else rest))
