"""Keyboard: which keys do what, and moving the focus.

Streamlit runs a button's shortcut wherever the page has the focus.  Letters and digits alone are off inside text fields; C and R are
its own.  Keys that browsers keep (Ctrl+D, Ctrl+W, ...) are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import streamlit as st

SUBMIT = "Ctrl+Enter"
SAFE = re.compile(r"[0-9]|[ABD-QS-Z]|Ctrl\+Enter")  # letters but C and R

# Trusted, constant script: it takes the name of a place and a token, and touches nothing else.
_FOCUS = """
export default function({ data }) {
  if (!data || window.__ambiscopeFocus === data.token) return;
  window.__ambiscopeFocus = data.token;
  const look = (tries) => {
    const place = document.querySelector('.st-key-' + CSS.escape(data.place));
    const field = place && (place.matches('input, textarea, button') ? place : place.querySelector('input, textarea, button'));
    if (!field) { if (tries > 0) setTimeout(() => look(tries - 1), 100); return; }
    place.scrollIntoView({ block: 'nearest' });
    field.focus({ preventScroll: true });
  };
  look(20);
}
"""


def legend(entries: Iterable[tuple[str, str]]) -> None:
    """What each key does, always visible.  Raises AssertionError for a key that is not safe."""
    said = []
    for key, what in entries:
        assert all(SAFE.fullmatch(k) for k in key.split("–")), key
        said.append(f":gray-badge[{key}] {what}")
    st.caption("Keys: " + " · ".join(said) + " · off while you type in a field, except :gray-badge[Ctrl+Enter]")


@st.cache_resource(show_spinner=False)
def _component() -> object:
    return st.components.v2.component("ambiscope.focus", js=_FOCUS)


def focus(place: str, token: object) -> None:
    """Moves the focus into the container (or widget) with the key `place`, once for each token."""
    mount = _component()
    if callable(mount):
        mount(key="focus", data={"place": re.sub(r"[^a-zA-Z0-9_-]", "-", place), "token": str(token)}, height=1)
