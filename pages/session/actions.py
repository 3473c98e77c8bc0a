"""Callbacks that may fail, and their outcome: one message and one error per session, drawn above the next page.

A callback that does more than one call of the store (corpora, runs, uploads, files) checks the table of permissions
(`storage.access.permissions`) first; a test finds those that do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import shared
from pages.ui.markup import escape
from storage.access.permissions import Name
from storage.records.annotation import FieldError, SignInError

P = ParamSpec("P")
MESSAGE, ERROR = "app.message", "app.error"
_shown = itertools.count(1)


def say(text: str) -> None:
    st.session_state[MESSAGE] = text


def reported(do: Callable[P, None]) -> Callable[P, None]:
    """Wraps a callback so that its AmbiscopeError is shown at the next drawing."""

    @wraps(do)
    def callback(*args: P.args, **kw: P.kwargs) -> None:
        try:
            do(*args, **kw)
        except AmbiscopeError as error:
            st.session_state[ERROR] = error

    return callback


def action(name: Name) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A reported callback for people who may do the action `name`.  The check is needed because callbacks run before the
    sign-in is checked."""

    def around(do: Callable[P, None]) -> Callable[P, None]:
        @reported
        @wraps(do)
        def callback(*args: P.args, **kw: P.kwargs) -> None:
            shared.store().allow(name)
            do(*args, **kw)

        return callback

    return around


def submit(form: str, do: Callable[[], object], message: str) -> None:
    """Runs in the callback of a form, whose fields have the keys `form.FIELD`, and empties them after success.  The error of a
    field is shown beside it, and the fields keep their texts.  Raises an AmbiscopeError that isn't about a field."""
    state = st.session_state
    state.pop(f"{form}:error", None)
    try:
        do()
    except (FieldError, SignInError) as error:
        state[f"{form}:error"] = error
        return
    for key in [str(k) for k in state if str(k).startswith(f"{form}.")]:
        if isinstance(state[key], str):
            state[key] = ""
    say(message)


def show_field_error(form: str, field: str) -> None:
    """Shows an error below its field.  An error without a field is about `old`, the current password."""
    error = st.session_state.get(f"{form}:error")
    if error is not None and getattr(error, "field", "old") == field:
        shared.show_error(error)


def show_outcome() -> None:
    """Draws always one container, so that elements below keep their position and state."""
    with st.container():
        if text := st.session_state.pop(MESSAGE, None):
            st.success(escape(text), icon=":material/check:")
        if error := st.session_state.pop(ERROR, None):
            shared.show_error(error)


def show_uncaught(error: Exception) -> bool:
    """Streamlit's handler of exceptions (`on_script_error`): shows the error in the place of Streamlit's own box, which True suppresses.

    After an error in a callback the script does not run, so the page is not there: the button draws it again.  What was typed is kept."""
    shared.show_error(error)
    st.caption("What you had typed is kept.")
    st.button("Continue", key=f"app.uncaught.{next(_shown)}", icon=":material/refresh:")
    return True
