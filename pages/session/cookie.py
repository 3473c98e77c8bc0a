"""The cookie of a password sign-in: its name, and the script by which the browser gets it from the server.

A script run has no response that could set a cookie, and a cookie set by a script of the page could be read by scripts.  So the page posts a
code to `address`, and the server's answer sets the cookie (pages.server.sign_in_cookie).
"""

from __future__ import annotations

import hashlib
import json

import streamlit as st

OUT, STALE = "out", ""  # in place of a code: signs the cookie's visitor out; deletes the cookie if it is not valid


def name(database: str) -> str:
    """The cookie's name, one for each database, because a browser sends its cookies to all ports of a machine."""
    return f"ambiscope_{hashlib.sha256(database.encode()).hexdigest()[:8]}"


def folder() -> str:
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}/" if base else "/"


def address() -> str:
    return f"{folder()}_ambiscope/sign-in"


def script() -> str:
    """The script that the content security policy allows."""
    return f"fetch({json.dumps(address())}, {{method: 'POST', body: document.currentScript.dataset.code}})"


def show(code: str) -> None:
    """Makes the browser post the code, OUT or STALE."""
    st.html(f'<script data-code="{code}">{script()}</script>', unsafe_allow_javascript=True)
