"""A button that copies an address of this installation, with the host and path that the browser uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

# Trusted, constant script: it copies the page's own address with the given query.
_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_STYLE = """
button { font: inherit; font-size: 0.875rem; color: var(--st-text-color); background: var(--st-background-color); cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem); min-height: 2.5rem; padding: 0.25rem 0.75rem; }
button:hover { color: var(--st-link-color); border-color: currentColor; }
button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
"""


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., object]:
    return st.components.v2.component(
        "ambiscope.copying", html="<button type=button>Copy link</button>", css=_STYLE, js=_SCRIPT
    )


def copy_link(query: str, key: str, side: str = "") -> None:
    """`query`: the address's, without "?".  `side`: read aloud after the label if there are several."""
    _component()(key=key, data={"query": query, "side": side}, width="content", height="content")
