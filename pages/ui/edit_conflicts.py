"""Fields that start from a stored version.  If another person or tab has stored a newer one, unsaved typing stays until the
user chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def loaded_version(name: str, latest: T, touched: Callable[[T], bool], keep: Callable[[], None]) -> T:
    """The version that the fields of this tab began from: `latest`, the current one, or an earlier one in which something was changed since
    (`touched`).  Then the page asks which to keep: `keep`, a callback, stores this tab's fields over the newer version."""
    loaded: T = st.session_state.setdefault(name, latest)
    if loaded != latest and not touched(loaded):
        st.session_state[name] = loaded = latest
    if loaded != latest:
        st.warning(
            "This was changed in another window. Your changes here are not saved yet. Which version do you want to keep?",
            icon=":material/sync_problem:",
        )
        with st.container(horizontal=True):
            st.button("Save mine", key=f"{name}.mine", on_click=keep)
            st.button("Use the other version", key=f"{name}.theirs", on_click=reload_fields, args=(name,))
    return loaded


def reload_fields(name: str) -> None:
    """Callback, also called after saving: the fields start again from the stored version."""
    st.session_state.pop(name, None)
