"""Sessions that have passed the sign-in, for checks outside a session, because Streamlit's server accepts files before any page
has run."""

from __future__ import annotations

import threading
from collections.abc import Callable

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import RerunException, get_script_run_ctx

from core.errors import AmbiscopeError
from pages.server.admitted import ADMITTED
from pages.session import shared

MAX_SESSIONS = 1000  # above this number, ended sessions are removed
_LOCK = threading.Lock()


def run_gate(gate: Callable[[], bool]) -> None:
    """Runs the sign-in, which returns whether people sign in: a session that passes is admitted, one that is stopped is not.  Raises as it does."""
    try:
        has_accounts = gate()
    except RerunException:
        raise
    except BaseException:
        _note(None)
        raise
    _note(has_accounts)


def _note(has_accounts: bool | None) -> None:
    """`has_accounts`: None for a session that is not admitted."""
    if (context := get_script_run_ctx()) is None:
        return
    with _LOCK:
        if has_accounts is None:
            ADMITTED.pop(context.session_id, None)
            return
        if len(ADMITTED) >= MAX_SESSIONS and runtime.exists():
            for session in [s for s in ADMITTED if not runtime.get_instance().is_active_session(s)]:
                del ADMITTED[session]
        ADMITTED[context.session_id] = has_accounts


def is_admitted(session: str) -> bool:
    """Whether a session is admitted.  A tab that was open before people had accounts isn't, from the first account on.  May be
    called from any thread."""
    signed_in = ADMITTED.get(session)
    try:
        return signed_in is True or (signed_in is False and not shared.servers_store().people.accounts_in_use())
    except AmbiscopeError:
        return False


def warn() -> None:
    """Warns on every page while other machines can connect without an account."""
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
