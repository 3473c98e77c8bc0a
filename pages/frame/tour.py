"""The tour of a first visit: ask, judge, compare.  It follows the person's actions, and is never shown again after it has
ended."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages.session import shared

PREFERENCE, FINISHED = "tour", "ended"
ASK, JUDGE, COMPARE = (
    "**Step 1 of 3: Ask a question.** Best one that can be understood in several ways.",
    "**Step 2 of 3: Judge an answer.** Open it and choose a label.",
    "**Step 3 of 3: Compare systems.** Open Two runs to see where they differ.",
)


def step(page: str) -> str:
    """The tour's text for this page (its address); empty on pages that are not part of the tour."""
    if page == "evaluate":
        return COMPARE
    if page in ("", "home", shared.FIRST_PAGE):
        return JUDGE if st.query_params.get("prediction") else ASK
    return ""


def draw(page: str) -> None:
    """Draws the tour above the page."""
    text = step(page)
    if not text or st.session_state.get("guide.tour") == FINISHED or shared.preference(PREFERENCE) == FINISHED:
        return
    with st.container(border=text != JUDGE, horizontal=True, vertical_alignment="center", key="guide.tour.card"):
        st.markdown(f":material/tour: {f':small[{text}]' if text == JUDGE else text}", width="content")
        if text == JUDGE:
            st.page_link("pages/evaluate/page.py", label="Next: compare systems", icon=":material/bar_chart:")
        label = "Finish" if text == COMPARE else "End the tour"
        st.button(label, key="guide.tour.end", icon=":material/close:", on_click=_end, type="tertiary")


def _end() -> None:
    """Callback.  If the preference can't be stored, the tour ends in this tab only."""
    st.session_state["guide.tour"] = FINISHED
    try:
        shared.set_preference(PREFERENCE, FINISHED)
    except AmbiscopeError as error:
        shared.log.warning("the end of the tour was not kept: %s", error)
