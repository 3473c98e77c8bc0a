"""Keyboard: which keys do what, one key after the other, and moving the focus.

Streamlit runs a button's shortcut wherever the page has the focus.  Letters and digits alone are off inside text fields; C and R are
its own.  Keys that browsers keep (Ctrl+D, Ctrl+W, ...) are not used.

What a key does depends on what the key before it did, and the page shows that only after Streamlit's rerun: so a script on the page
takes the keys before Streamlit does, and presses the button that has the shortcut when the page has come to rest.  Keys of an item
are forgotten when another one is on the screen: nobody has seen it yet.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

SUBMIT = "Ctrl+Enter"
SAFE = re.compile(r"[0-9]|[ABD-QS-Z]|Ctrl\+Enter")  # letters but C and R
_runs = itertools.count(1)

# Trusted, constant script: it takes names of places and tokens, and presses no button but one that shows the key.
_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def legend(entries: Iterable[tuple[str, str]]) -> None:
    """What each key does, always visible.  Raises AssertionError for a key that is not safe."""
    parts = []
    for key, what in entries:
        assert all(SAFE.fullmatch(k) for k in key.split("–")), key
        parts.append(f":gray-badge[{key}] {what}")
    # no caption: those are drawn pale, and badges in them paler
    st.markdown(f":small[Keys: {' · '.join(parts)}. Off while you type in a field, except :gray-badge[Ctrl+Enter]]")


@st.cache_resource(show_spinner=False)
def _component() -> object:
    return st.components.v2.component("ambiscope.keys", js=_SCRIPT)


def _place(key: str) -> str:
    """The class that Streamlit gives to the container with this key."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)


def capture_keys(item: str, place: str = "", token: object = "", card: str = "") -> None:
    """Drawn last in a form.  Keys are done one by one from here on; a new `item` is shown from its question on.

    The focus moves into the container (or widget) with the key `place`, once for each token; `card`: what should be seen with it."""
    mount = _component()
    if callable(mount):
        data = {"item": item, "place": _place(place), "card": _place(card), "token": str(token), "run": next(_runs)}
        mount(key="keys", data=data, height=1)
