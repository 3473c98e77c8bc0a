"""Callbacks that may fail, and their outcome: one message and one error per session, drawn above the next page.

A callback that does more than one call of the store (corpora, runs, uploads, files) checks the table of permissions
(`storage.access.permissions`) first; a test finds those that do not.
"""

from __future__ import annotations

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


def say(text: str) -> None:
    st.session_state[MESSAGE] = text


def reported(do: Callable[P, None]) -> Callable[P, None]:
    """A callback whose AmbiscopeError is shown at the next drawing."""

    @wraps(do)
    def callback(*args: P.args, **kw: P.kwargs) -> None:
        try:
            do(*args, **kw)
        except AmbiscopeError as error:
            st.session_state[ERROR] = error

    return callback


def action(name: Name) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A reported callback for those who may do the action `name`: callbacks run before the sign-in is checked."""

    def around(do: Callable[P, None]) -> Callable[P, None]:
        @reported
        @wraps(do)
        def callback(*args: P.args, **kw: P.kwargs) -> None:
            shared.store().allow(name)
            do(*args, **kw)

        return callback

    return around


def submit(form: str, do: Callable[[], object], message: str) -> None:
    """In the callback of a form, whose fields have the keys `form.FIELD`: empties them after success.  The error of a field is
    shown beside it, and the fields keep their texts.  Raises AmbiscopeError where it is about no field."""
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
    """Below a field.  An error without a field is about `old`, the current password."""
    error = st.session_state.get(f"{form}:error")
    if error is not None and getattr(error, "field", "old") == field:
        shared.show_error(error)


def show_outcome() -> None:
    """Always one container: so that elements below keep their position, and with it their state."""
    with st.container():
        if text := st.session_state.pop(MESSAGE, None):
            st.success(escape(text), icon=":material/check:")
        if error := st.session_state.pop(ERROR, None):
            shared.show_error(error)
