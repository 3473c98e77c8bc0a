"""Opens Explore from another page: over a corpus, or over passages as if a person had pasted them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.types import Passage

SWITCH, TEXT = "explore.paste", "explore.pasted"  # keys of Explore: whether passages are pasted, and the box with them


def put(passages: Sequence[Passage] | None) -> None:
    """Fills the box as if a person had pasted these passages.  None: the question is about the corpus."""
    st.session_state[SWITCH] = passages is not None
    if passages is not None:
        st.session_state[TEXT] = "\n\n".join(f"# {p.title}\n{p.text}" if p.title else p.text for p in passages)


def open_explore(question: str = "", *, corpus: str = "", passages: Sequence[Passage] | None = None, system: str = "") -> None:
    """Opens Explore from another page, over a corpus or over `passages` as if a person had pasted them, and asks the question
    if one is given."""
    state = st.session_state
    put(passages)
    if corpus:
        state["explore.corpus"] = corpus
    if system:
        state["explore.first.system"] = system
    if question:
        state["explore.question"] = state["explore.ask"] = question
    st.switch_page("pages/explore/page.py")
