"""Facts about a session's connection: browser, network address, and the subject signed in with the provider."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from core.errors import InputError
from storage.access.people import joined_subject


def browser_of(cookies: Mapping[str, str]) -> str:
    """The random token of a browser, from Streamlit's XSRF cookie; empty if there is none.  Each page load masks the cookie
    again, but the token in it stays the same."""
    token, _ = decode_xsrf_token_string(str(cookies.get(XSRF_COOKIE_NAME, "")))
    return token.hex() if token else ""


def browser() -> str:
    """The random token of this connection's browser."""
    return browser_of(st.context.cookies)


def address() -> str:
    """The network address of the client; empty for this machine.  Behind a proxy on this machine, or one that
    FORWARDED_ALLOW_IPS names (uvicorn's setting), it is the last address of X-Forwarded-For; behind another proxy, the proxy's
    own."""
    return st.context.ip_address or ""


def provider() -> bool:
    """Whether Streamlit's own login is configured."""
    try:
        return bool(st.secrets.load_if_toml_exists()) and "auth" in st.secrets
    except Exception:  # a broken secrets file must not open the installation: passwords and roles still apply
        return False


def subject() -> str:
    """The provider's current subject ("issuer subject", as accounts store it); empty if nobody is signed in, and for claims
    that an account can't store."""
    if not provider() or not st.user.is_logged_in:
        return ""
    try:
        return joined_subject(st.user.get("iss"), st.user.get("sub"))
    except InputError:
        return ""
