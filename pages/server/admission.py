"""Which sessions the sign-in has let in, for what asks outside a session: Streamlit's server takes files before any page has run."""

from __future__ import annotations

import threading
from collections.abc import Callable

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import RerunException, get_script_run_ctx

from core.errors import AmbiscopeError
from pages.server.admitted import ADMITTED
from pages.session import shared

MAX_SESSIONS = 1000  # sessions; beyond them, those that have ended are forgotten
_LOCK = threading.Lock()


def note_who_comes_through(gate: Callable[[], bool]) -> None:
    """Runs the sign-in, which says whether people sign in: whoever comes through is in, whoever is stopped there is out.  Raises as it does."""
    try:
        closed = gate()
    except RerunException:
        raise
    except BaseException:
        _note(None)
        raise
    _note(closed)


def _note(closed: bool | None) -> None:
    if (context := get_script_run_ctx()) is None:
        return
    with _LOCK:
        if closed is None:
            ADMITTED.pop(context.session_id, None)
            return
        if len(ADMITTED) >= MAX_SESSIONS and runtime.exists():
            for ended in [s for s in ADMITTED if not runtime.get_instance().is_active_session(s)]:
                del ADMITTED[ended]
        ADMITTED[context.session_id] = closed


def session_is_let_in(session: str) -> bool:
    """A tab that was open before people had accounts is out from the first account on.  Any thread."""
    came = ADMITTED.get(session)
    try:
        return came is True or (came is False and not shared.servers_store().people.accounts_in_use())
    except AmbiscopeError:
        return False


def warn() -> None:
    """On every page, as long as other machines get in without an account."""
    try:
        is_open = shared.settings().open_to_all and not shared.servers_store().people.accounts_in_use()
    except AmbiscopeError:
        return
    if is_open:
        st.warning(
            "Other machines can connect without an account (AMBISCOPE_OPEN_TO_ALL). Anyone who reaches this address can read, change and delete "
            "everything. To stop this, add a manager with a password on the Manage page, under People.",
            icon=":material/lock_open:",
        )
