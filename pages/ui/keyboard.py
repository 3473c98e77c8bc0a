"""Keyboard: the keys and their effects, one key after the other, and moving the focus.

Streamlit runs a button's shortcut wherever the page has the focus.  Single letters and digits are off inside text fields; C and R are
Streamlit's own.  Keys that browsers reserve (Ctrl+D, Ctrl+W, ...) are not used.

The effect of a key depends on the key before it, whose effect the page shows only after Streamlit's rerun: so a script on the page
receives the keys before Streamlit does, and presses the button that has the shortcut when the rerun is finished.  Keys of an item
are dropped when another item is on the screen: nobody has seen it yet.  A letter that follows others typed in a field which a rerun
took away belongs to them, and does nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import streamlit as st

SUBMIT = "Ctrl+Enter"
SAFE_SHORTCUTS = re.compile(r"[0-9]|[ABD-QS-Z]|/|Ctrl\+Enter")  # letters but C and R
_runs = itertools.count(1)

# Trusted, constant script: it gets class names and tokens, and presses no button but one that shows the key.
_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def legend(entries: Iterable[tuple[str, str]]) -> None:
    """The keys with their effects, always visible.  Raises AssertionError for an unsafe key."""
    parts = []
    for key, effect in entries:
        assert all(SAFE_SHORTCUTS.fullmatch(k) for k in key.split("–")), key
        parts.append(f":gray-badge[{key}] {effect}")
    # no caption: those are drawn pale, and badges in them even paler
    st.markdown(f":small[Keys: {' · '.join(parts)}. Off while you type in a field, except :gray-badge[Ctrl+Enter]]")


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., object]:
    return st.components.v2.component("ambiscope.keys", js=_SCRIPT)


def _place(key: str) -> str:
    """The class that Streamlit gives to the container with this key."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", key)


def capture_keys(item: str, place: str = "", token: object = "", card: str = "") -> None:
    """Drawn last in a form.  From here on keys are handled one by one; a new `item` is scrolled to its question.

    The focus moves into the container (or widget) with the key `place`, once for each token; `card`: key of the container to show with it."""
    data = {"item": item, "place": _place(place), "card": _place(card), "token": str(token), "run": next(_runs)}
    _component()(key="keys", data=data, height=1)
