"""Who is using the app: a provider of OpenID Connect where `.streamlit/secrets.toml` has [auth], people's own passwords where
some have one, else one person who types a name.

What a sign-in gave a session (`storage.access.visitors.Visitor`) lives on the server.  The store checks it at each call; the gate only draws the form
where it does not stand, or not any more.  A cookie brings the sign-in with a password back: after a reload, in a second tab, after a restart.
"""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import connection, cookie, shared
from pages.session.actions import reported, submit, wrong
from pages.ui.markup import escape
from storage.access.visitors import Visitor
from storage.records.annotation import SignedOutError, SignInError

SUBJECT, TRIED = "signin.subject", "signin.tried"  # that was looked up in this session, and the cookie that was
WHY, POST, KEPT = (
    "signin.why",
    "signin.post",
    "signin.kept",
)  # said above the form; for the browser to post; whose words, and which
NAME_CHARS = 60
ADDRESS = "me"  # of the address: the name of a session without passwords


def _cookie() -> str:
    return str(st.context.cookies.get(cookie.name(shared.settings().url), ""))


def sign_out() -> None:
    """Callback.  Nothing of the person stays in the tab, and every tab of this browser is signed out."""
    known = connection.provider() and st.user.is_logged_in
    with suppress(AmbiscopeError):
        shared.store().people.sign_out(shared.visitor())
    st.session_state.clear()
    st.session_state.update({POST: cookie.OUT, TRIED: _cookie()})
    if known:
        st.logout()


@reported
def _sign_out_everywhere() -> None:
    """Callback."""
    shared.store().people.sign_out_everywhere(shared.annotator())
    sign_out()


def _enter(visitor: Visitor) -> None:
    """What the tab held before it was signed in, or for somebody else, is gone; what this person had typed when their sign-in ended is back."""
    state = st.session_state
    looked_up, (name, words) = state.get(SUBJECT, ""), state.get(KEPT, ("", {}))
    state.clear()
    shared.keep_visitor(visitor)
    state[SUBJECT] = looked_up
    if name == visitor.name:
        state.update(words)


def stay(visitor: Visitor) -> None:
    """Callback: this session goes on as `visitor`, with all that it holds."""
    shared.keep_visitor(visitor)
    st.session_state.update({"annotator": visitor.name, POST: visitor.code, SUBJECT: connection.subject()})


def _try_password() -> None:
    """Callback of the form.  The password leaves the session state at once."""
    state = st.session_state
    name = str(state.get("signin.typed") or "").strip()
    password = str(state.pop("signin.password", "") or "")
    state.pop(WHY, None)
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
    if why := state.get(WHY):
        shared.show_error(why)
    if KEPT in state:
        st.info(f"What you had typed is kept in this tab: sign in as {escape(state[KEPT][0])} to go on with it.")
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
        if error := state.pop("signin.error", None):
            shared.show_error(error)
        st.form_submit_button("Sign in", type="primary", on_click=_try_password)
    if (post := state.pop(POST, None)) is not None:
        cookie.show(post)


def _by_cookie() -> None:
    """Looks a cookie up once a session; one that stands for nobody is taken away."""
    state, token = st.session_state, _cookie()
    if not token or shared.VISITOR in state or state.get(TRIED) == token:
        return
    if visitor := shared.store().people.resume(token):
        _enter(visitor)
    elif WHY not in state:
        state.update({POST: cookie.STALE, WHY: SignedOutError()})
    state[TRIED] = token


def _by_subject(who: str) -> None:
    """Looks the subject up once a session, and again when its visitor does not stand any more."""
    if not who or st.session_state.get(SUBJECT) == who:
        return
    with suppress(SignInError):
        _enter(shared.store().people.sign_in_subject(who))
    st.session_state[SUBJECT] = who


@reported
def _change_password() -> None:
    """Callback.  Signs this tab in anew; every other one of the account is signed out."""

    def change() -> None:
        name, people, where = shared.annotator(), shared.store().people, connection.address()
        new = st.session_state.get("signin.change.password") or ""
        people.set_password(name, name, new, old=st.session_state.get("signin.change.old") or "", address=where)
        stay(people.sign_in(name, new, where, connection.browser()))

    submit("signin.change", change, "Your password was changed.")


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
                            wrong("signin.change", field)
                        st.form_submit_button("Change password", on_click=_change_password)
                    st.button("Sign out everywhere", on_click=_sign_out_everywhere, key="signin.everywhere")
        if post := st.session_state.get(POST):
            cookie.show(post)


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


def _set_fallen_aside() -> None:
    """Where what a sign-in gave does not stand any more, says why.  What was typed waits for the same person; in another connection, nothing."""
    state = st.session_state
    if shared.VISITOR not in state:
        return
    try:
        shared.store().allow("annotate")
    except SignedOutError as error:
        visitor, words = shared.visitor(), {k: v for k, v in state.to_dict().items() if _is_typed(str(k), v)}
        state.clear()
        state[WHY] = error
        if visitor is not None and visitor.account:
            state[KEPT] = (visitor.name, words)


def _is_typed(key: str, value: object) -> bool:
    """Texts, and forms that a page keeps as an object of ours.  Streamlit takes no values for its buttons, tables and files."""
    ours = type(value).__module__.startswith("pages.") and not callable(value)
    return not key.startswith(("app.", "signin.")) and (isinstance(value, str) or ours)


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
        _set_fallen_aside()
        _by_subject(who)
        _by_cookie()
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
