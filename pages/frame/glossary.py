"""The glossary and the keys, on every page: a button in the sidebar, or the key `?`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from core.text import PASSAGE_WORDS
from pages.ui import keys
from pages.ui.markup import escape

BUTTON = "guide.sheet"
WORDS = {
    "answer set": "All plausible answers to one question, each with its evidence.",
    "disambiguated question": "The question with a small change, so that it has exactly one of the answers.",
    "evidence": "The passage, and the place in it, that an answer was read from.",
    "[EOI]": "End of iteration: the model says that no answer is left.",
    "passage": f"At most {PASSAGE_WORDS} words of a document with a title.",
    "step": "One turn of the loop: the answers so far, the candidates, and the choice among them.",
    "interpretation": "A disambiguated question, its answer, and the passage that supports it.",
    "system": "What turns a question into an answer set.",
    "trace": "All that happened in one run; enough to draw its page again.",
    "label": "A person's assessment of an answer: correct, wrong, unsupported, duplicate, outdated or contradicts.",
    "judge": "A model that grades answers; never a person.",
}

# Trusted, constant script: it presses the button of this sheet.
_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., object]:
    return st.components.v2.component("ambiscope.sheet", js=_SCRIPT)


@st.dialog("Glossary and shortcuts", width="large")
def _sheet() -> None:
    st.markdown("**Words**")
    st.markdown(
        "\n".join(["| word | what it means |", "|---|---|", *(f"| **{escape(w)}** | {escape(m)} |" for w, m in WORDS.items())])
    )
    st.markdown("**Keys**")
    groups = {
        "every page": (("?", "this sheet"),),
        "Explore": (("Enter", "ask the question"),),
        "Annotate": (*keys.EVERYWHERE, *keys.REOPENING, *keys.SEARCHING),
        "Annotate, writing": (*keys.WRITING, *keys.SUGGESTIONS, *keys.REJECTING, *keys.READING),
        "Annotate, validation": (*keys.VALIDATION, *keys.SUGGESTIONS, *keys.READING),
        "Annotate, judging": (*keys.JUDGING, *keys.COMPARING),
    }
    rows = [
        f"| {escape(page)} | {' · '.join(f':gray-badge[{escape(key)}] {escape(effect)}' for key, effect in keys)} |"
        for page, keys in groups.items()
    ]
    st.markdown("\n".join(["| where | key |", "|---|---|", *rows]))
    st.caption("Keys of Annotate are off while you type in a field, except Ctrl+Enter.")


def draw() -> bool:
    """Draws the button in the sidebar.  Returns whether the sheet was opened."""
    pressed = st.button("Glossary and shortcuts (?)", key=BUTTON, type="tertiary", icon=":material/help:")
    if pressed:
        _sheet()
    return pressed


def listen() -> None:
    """Drawn last: makes the key `?` press the button of the sheet."""
    _component()(key="guide.keys", height=1)
