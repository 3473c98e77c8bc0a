"""Sign-in: by an OpenID Connect provider if `.streamlit/secrets.toml` has [auth], by passwords if people have them, or else a
typed name.

The visitor of a session (`storage.access.sign_ins.Visitor`) is kept on the server.  The store checks it at each call; the gate only draws the
form where it is missing or no longer valid.  A cookie restores a sign-in with a password after a reload or restart, and in a second tab.
"""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import connection, cookie, shared
from pages.session.actions import reported, show_field_error, submit
from pages.ui.markup import escape
from storage.access.sign_ins import Visitor
from storage.records.annotation import SignedOutError, SignInError

SUBJECT, COOKIE = "signin.subject", "signin.tried"  # the last ones that were looked up in this session
REASON, POST = "signin.why", "signin.post"  # shown above the form; what the browser is to post
DRAFTS_KEY = "signin.kept"  # (name of the person, what they had typed when their sign-in ended)
NAME_CHARS = 60
ADDRESS = "me"  # URL parameter: the name of a session without passwords


def _cookie() -> str:
    return str(st.context.cookies.get(cookie.name(shared.settings().url), ""))


def sign_out() -> None:
    """Callback.  Clears the tab, and signs out every tab of this browser."""
    by_provider = connection.provider() and st.user.is_logged_in
    with suppress(AmbiscopeError):
        shared.store().people.sign_out(shared.visitor())
    st.session_state.clear()
    st.session_state.update({POST: cookie.OUT, COOKIE: _cookie()})
    if by_provider:
        st.logout()


@reported
def _sign_out_everywhere() -> None:
    """Callback."""
    shared.store().people.sign_out_everywhere(shared.annotator())
    sign_out()


def _enter(visitor: Visitor) -> None:
    """Clears the tab's earlier state, perhaps somebody else's, and restores what this person had typed when their sign-in
    ended."""
    state = st.session_state
    subject, (name, drafts) = state.get(SUBJECT, ""), state.get(DRAFTS_KEY, ("", {}))
    state.clear()
    shared.keep_visitor(visitor)
    state[SUBJECT] = subject
    if name == visitor.name:
        state.update(drafts)


def stay(visitor: Visitor) -> None:
    """Callback: this session continues as `visitor`, with its state."""
    shared.keep_visitor(visitor)
    st.session_state.update({"annotator": visitor.name, POST: visitor.code, SUBJECT: connection.subject()})


def _try_password() -> None:
    """Callback of the form.  The password leaves the session state at once."""
    state = st.session_state
    name = str(state.get("signin.typed") or "").strip()
    password = str(state.pop("signin.password", "") or "")
    state.pop(REASON, None)
    try:
        visitor = shared.store().people.sign_in(name, password, connection.address(), connection.browser())
    except AmbiscopeError as error:
        state["signin.error"] = error
    else:
        _enter(visitor)
        state[POST] = visitor.code


def _form() -> None:
    st.header("Ambiscope")
    st.subheader("Sign in")
    state = st.session_state
    if reason := state.get(REASON):
        shared.show_error(reason)
    if DRAFTS_KEY in state:
        st.info(f"Your unsaved text is kept in this tab: sign in as {escape(state[DRAFTS_KEY][0])} to continue with it.")
    if connection.provider():
        if subject := connection.subject():
            st.warning(
                "You signed in with the provider, but you have no account here. Send this line to your manager, who can add you:"
            )
            st.code(subject, language=None, wrap_lines=True)
            st.button("Sign out", on_click=sign_out, key="signin.out.unknown")
        else:
            st.button("Sign in with your organisation", on_click=st.login, type="primary", key="signin.provider")
        st.caption("Or use the name and password from your manager:")
    with st.form("signin.form", width=420):
        st.text_input("Name", key="signin.typed", max_chars=NAME_CHARS, autocomplete="username")
        st.text_input("Password", type="password", key="signin.password", max_chars=400, autocomplete="current-password")
        if error := state.pop("signin.error", None):
            shared.show_error(error)
        st.form_submit_button("Sign in", type="primary", on_click=_try_password)
    if (post := state.pop(POST, None)) is not None:
        cookie.show(post)


def _by_cookie() -> None:
    """Looks a cookie up once per session, and deletes one that isn't valid."""
    state, token = st.session_state, _cookie()
    if not token or shared.VISITOR_KEY in state or state.get(COOKIE) == token:
        return
    if visitor := shared.store().people.resume(token):
        _enter(visitor)
    elif REASON not in state:
        state.update({POST: cookie.STALE, REASON: SignedOutError()})
    state[COOKIE] = token


def _by_subject(subject: str) -> None:
    """Looks the subject up once per session, and again when its visitor is no longer valid."""
    if not subject or st.session_state.get(SUBJECT) == subject:
        return
    with suppress(SignInError):
        _enter(shared.store().people.sign_in_subject(subject))
    st.session_state[SUBJECT] = subject


@reported
def _change_password() -> None:
    """Callback.  Signs this tab in again; the account's other tabs are signed out."""

    password, old = (str(st.session_state.get(f"signin.change.{field}") or "") for field in ("password", "old"))
    submit("signin.change", lambda: set_own_password(shared.annotator(), password, old), "Your password was changed.")


def set_own_password(name: str, password: str, old: str | None) -> None:
    """Sets the signed-in user's own password; they stay signed in here.  Raises the store's errors."""
    people, address = shared.store().people, connection.address()
    people.set_password(name, name, password, old=old, address=address)
    stay(people.sign_in(name, password, address, connection.browser()))


def _signed_in(name: str) -> None:
    st.session_state["annotator"] = name
    with st.sidebar:
        st.markdown(f":material/person: **{escape(name)}**")
        with st.container(horizontal=True):
            st.button("Sign out", on_click=sign_out, key="signin.out")
            if not connection.subject():
                with st.popover("Account"):
                    with st.form("signin.form.change", border=False):
                        fields = {"old": ("Current password", "current-password"), "password": ("New password", "new-password")}
                        for field, (label, fill) in fields.items():
                            st.text_input(label, type="password", key=f"signin.change.{field}", autocomplete=fill)
                            show_field_error("signin.change", field)
                        st.form_submit_button("Change password", on_click=_change_password)
                    st.button("Sign out everywhere", on_click=_sign_out_everywhere, key="signin.everywhere")
        if post := st.session_state.get(POST):
            cookie.show(post)


def _end_invalid_sign_in() -> None:
    """Clears a session whose sign-in is no longer valid, and keeps the reason.  Within the same connection, typed text is kept
    for the same person."""
    state = st.session_state
    if shared.VISITOR_KEY not in state:
        return
    try:
        shared.store().allow("annotate")
    except SignedOutError as error:
        visitor, drafts = shared.visitor(), {k: v for k, v in state.to_dict().items() if _is_typed(str(k), v)}
        state.clear()
        state[REASON] = error
        if visitor is not None and visitor.account:
            state[DRAFTS_KEY] = (visitor.name, drafts)


def _is_typed(key: str, value: object) -> bool:
    """Whether a value is typed text, or a form that a page keeps as an object of this package.  Streamlit refuses values for
    its buttons, tables and files."""
    is_form = type(value).__module__.startswith("pages.") and not callable(value)
    return not key.startswith(("app.", "signin.")) and (isinstance(value, str) or is_form)


def gate() -> bool:
    """Draws the sidebar's part about the person, or stops the script at the sign-in form.  Called before the page.  True if
    people sign in.

    Raises AmbiscopeError if the database cannot be read: then permissions are unknown, and nothing is drawn.
    """
    default = shared.settings().annotator
    is_new = "annotator" not in st.session_state
    st.session_state.setdefault("annotator", default)
    subject = connection.subject()
    if shared.store().people.accounts_in_use():
        st.query_params.pop(ADDRESS, None)  # the address names nobody where people sign in
        _end_invalid_sign_in()
        _by_subject(subject)
        _by_cookie()
        if shared.VISITOR_KEY not in st.session_state:
            _form()
            st.stop()
        _signed_in(shared.annotator())
        return True
    st.session_state.pop(shared.VISITOR_KEY, None)
    if connection.provider() and not subject:
        _form()
        st.stop()
    if is_new:  # also after a reload: the work must not go on under another name than that in the address
        name = st.query_params.get(ADDRESS, "").strip()
        st.session_state["annotator"] = name if name and len(name) <= NAME_CHARS and name.isprintable() else default
    # before the page: drawing a run takes long, and a field that is not drawn loses its value
    st.sidebar.text_input(
        "Your name", key="annotator", max_chars=NAME_CHARS, help="Your judgments and annotations are stored under this name."
    )
    if (name := shared.annotator()) == default:
        st.query_params.pop(ADDRESS, None)
    else:
        st.query_params[ADDRESS] = name  # at each page: going to another one empties the address
    return False
