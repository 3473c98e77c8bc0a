"""Who is using the app: a provider of OpenID Connect where `.streamlit/secrets.toml` has [auth], people's own passwords where
some have one, else one person who types a name.

What a sign-in gave a session (`storage.access.visitors.Visitor`) lives on the server.  The store checks it at each call; the gate only draws the form
where it does not stand, or not any more.
"""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import connection, shared
from pages.ui.markup import escape
from storage.access.visitors import Visitor
from storage.records.annotation import SignedOutError, SignInError

SUBJECT = "signin.subject"  # that was looked up in this session
NAME_CHARS = 60
ADDRESS = "me"  # of the address: the name of a session without passwords


def sign_out() -> None:
    """Callback.  Nothing of the person stays in the tab."""
    known = connection.provider() and st.user.is_logged_in
    st.session_state.clear()
    if known:
        st.logout()


def _enter(visitor: Visitor) -> None:
    """What the tab held before it was signed in, or for somebody else, is gone."""
    looked_up = st.session_state.get(SUBJECT, "")
    st.session_state.clear()
    shared.keep_visitor(visitor)
    st.session_state[SUBJECT] = looked_up


def _try_password() -> None:
    """Callback of the form.  The password leaves the session state at once."""
    state = st.session_state
    name = str(state.get("signin.typed") or "").strip()
    password = str(state.pop("signin.password", "") or "")
    try:
        _enter(shared.store().people.sign_in(name, password, connection.address()))
    except AmbiscopeError as error:
        state["signin.error"] = error


def _form() -> None:
    st.header("Ambiscope")
    st.subheader("Sign in")
    if error := st.session_state.pop("signin.error", None):
        shared.show_error(error)
    if connection.provider():
        who = connection.subject()
        if who:
            st.warning(
                "You signed in with the provider, but you have no account here. Send this line to your manager, who can add you:"
            )
            st.code(who, language=None, wrap_lines=True)
            st.button("Sign out", on_click=sign_out, key="signin.out.unknown")
        else:
            st.button("Sign in with your organisation", on_click=st.login, type="primary", key="signin.provider")
        st.caption("Or use the name and password from your manager:")
    with st.form("signin.form", width=420):
        st.text_input("Name", key="signin.typed", max_chars=NAME_CHARS, autocomplete="username")
        st.text_input("Password", type="password", key="signin.password", max_chars=400, autocomplete="current-password")
        st.form_submit_button("Sign in", type="primary", on_click=_try_password)


def _by_subject(who: str) -> None:
    """Looks the subject up once a session, and again when its visitor does not stand any more."""
    if not who or st.session_state.get(SUBJECT) == who:
        return
    with suppress(SignInError):
        _enter(shared.store().people.sign_in_subject(who))
    st.session_state[SUBJECT] = who


def _change_password() -> None:
    """Callback.  Signs this tab in anew; every other one of the account is signed out."""
    state = st.session_state
    old, new = str(state.pop("signin.old", "") or ""), str(state.pop("signin.new", "") or "")
    try:
        name, store = shared.annotator(), shared.store()
        store.people.set_password(name, name, new, old=old, address=connection.address())
        shared.keep_visitor(store.people.sign_in(name, new, connection.address()))
        state["signin.message"] = "Your password was changed."
    except AmbiscopeError as error:
        state["signin.error"] = error


def _signed_in(name: str) -> None:
    st.session_state["annotator"] = name
    with st.sidebar:
        st.markdown(f":material/person: **{escape(name)}**")
        if message := st.session_state.pop("signin.message", None):
            st.success(escape(message))
        if error := st.session_state.pop("signin.error", None):
            shared.show_error(error)
        with st.container(horizontal=True):
            st.button("Sign out", on_click=sign_out, key="signin.out")
            if not connection.subject():
                with st.popover("Change password"), st.form("signin.change", border=False):
                    st.text_input("Current password", type="password", key="signin.old", autocomplete="current-password")
                    st.text_input("New password", type="password", key="signin.new", autocomplete="new-password")
                    st.form_submit_button("Change password", on_click=_change_password)


def _typed_before() -> str:
    """The name in the address: a reload begins a new session, and somebody's work must not go on under another name."""
    name = st.query_params.get(ADDRESS, "").strip()
    return name if len(name) <= NAME_CHARS and name.isprintable() else ""


def _keep_name(own: str) -> None:
    """Again at each page: going to another one empties the address."""
    name = shared.annotator()
    if name != own:
        st.query_params[ADDRESS] = name
    else:
        st.query_params.pop(ADDRESS, None)


def _forget_fallen() -> None:
    """Takes away, and says so, what a sign-in gave where the account was changed since, or the connection is another one's."""
    if shared.VISITOR in st.session_state and not shared.store().may("annotate"):
        st.session_state.clear()
        st.session_state["signin.error"] = SignedOutError()


def gate() -> bool:
    """Draws the sidebar's part about the person, or stops the script at the sign-in form.  Called before the page.  True where people sign in.

    Raises AmbiscopeError where the database cannot be read: then nothing is known of who may do what, and nothing is drawn.
    """
    own = shared.settings().annotator
    first = "annotator" not in st.session_state
    st.session_state.setdefault("annotator", own)
    who = connection.subject()
    if shared.store().people.accounts_in_use():
        st.query_params.pop(ADDRESS, None)  # who one is, is not read from an address where people sign in
        _forget_fallen()
        _by_subject(who)
        if shared.VISITOR not in st.session_state:
            _form()
            st.stop()
        _signed_in(shared.annotator())
        return True
    st.session_state.pop(shared.VISITOR, None)
    if connection.provider() and not who:
        _form()
        st.stop()
    if first:
        st.session_state["annotator"] = _typed_before() or own
    # before the page: a run that is being drawn lasts, and a field that is not drawn loses its value
    st.sidebar.text_input(
        "Your name", key="annotator", max_chars=NAME_CHARS, help="Your judgments and annotations are stored under this name."
    )
    _keep_name(own)
    return False
