"""Fields that began from a stored version: where somebody else, or another tab, stored a newer one, what is typed here stays until the
person chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def loaded_version(name: str, stored: T, touched: Callable[[T], bool], keep: Callable[[], None]) -> T:
    """What the fields of this tab began from: `found`, which is stored now, or an earlier one in which something was changed since
    (`touched`).  Of that one the page says so, with what to do: `keep`, a callback, stores this tab's fields over the newer version."""
    held: T = st.session_state.setdefault(name, stored)
    if held != stored and not touched(held):
        st.session_state[name] = held = stored
    if held != stored:
        st.warning(
            "This was changed in another window. Your changes here are not saved yet. Which version do you want to keep?",
            icon=":material/sync_problem:",
        )
        with st.container(horizontal=True):
            st.button("Save mine", key=f"{name}.mine", on_click=keep)
            st.button("Use the other version", key=f"{name}.theirs", on_click=reload_fields, args=(name,))
    return held


def reload_fields(name: str) -> None:
    """Callback, and after saving: the fields begin anew from what is stored."""
    st.session_state.pop(name, None)
