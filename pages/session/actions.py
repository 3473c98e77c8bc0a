"""Callbacks that do more than a call of the store, or several: corpora, runs, uploads, files.  Each is asked for at the one table of
`storage.access.permissions` first; a test finds those that are not."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import shared
from storage.access.permissions import Name

P = ParamSpec("P")


def action(name: Name, trouble: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """A callback that only who may do the action `name` can run: callbacks come before the gate.  An error raised on purpose, also of not
    being allowed, is kept under the key `trouble` of the session for the next drawing."""

    def around(do: Callable[P, None]) -> Callable[P, None]:
        @wraps(do)
        def callback(*args: P.args, **kw: P.kwargs) -> None:
            try:
                shared.store().allow(name)
                do(*args, **kw)
            except AmbiscopeError as error:
                st.session_state[trouble] = error

        return callback

    return around
