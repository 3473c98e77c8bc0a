"""What a connection says of itself: its browser, where it comes from, and whom the sign-in provider vouched for."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from core.errors import InputError
from storage.access.people import joined_subject


def browser_of(cookies: Mapping[str, str]) -> str:
    """The random token of a browser, of Streamlit's XSRF cookie; empty where there is none.  The cookie is masked again at each page
    load, the token in it stays."""
    token, _ = decode_xsrf_token_string(str(cookies.get(XSRF_COOKIE_NAME, "")))
    return token.hex() if token else ""


def browser() -> str:
    """Of this connection."""
    return browser_of(st.context.cookies)


def address() -> str:
    """Where the connection comes from; empty for this machine.  Behind a proxy on this machine it is the last address of
    X-Forwarded-For; behind one elsewhere where FORWARDED_ALLOW_IPS names it (uvicorn's setting), else the proxy's own."""
    return st.context.ip_address or ""


def provider() -> bool:
    """Streamlit's own login is set up."""
    try:
        return bool(st.secrets.load_if_toml_exists()) and "auth" in st.secrets
    except Exception:  # a broken secrets file must not open the house: passwords and roles still hold
        return False


def subject() -> str:
    """Of the visitor whom the provider vouches for at this moment, as accounts keep it; empty for nobody, and for claims that an
    account cannot keep."""
    if not provider() or not st.user.is_logged_in:
        return ""
    try:
        return joined_subject(st.user.get("iss"), st.user.get("sub"))
    except InputError:
        return ""
