"""A question about one's own text: the pasted text becomes the question's passages, and no corpus is searched."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import streamlit as st

from core.errors import InputError
from core.evaluation.published import example_of
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Rejected
from core.retrieval.readers.structure import PASSAGE_WORDS
from core.types import Passage, Question, ReferenceQuestion
from pages.explore.options import MAX_PASSAGES
from pages.session import shared
from pages.ui.markup import escape

SWITCH, TEXT = "explore.paste", "explore.pasted"
_TITLE = re.compile(r"^#+[ \t]+(.*\S)[ \t]*$", re.MULTILINE)


def passages_of(text: str) -> tuple[Passage, ...]:
    """Split like a corpus; a line that begins with # is the title of the text below.  Raises InputError for a text without words, and for one
    that is too long."""
    first, *sections = _TITLE.split("\n".join(text.splitlines()))
    parts = [("", first), *zip(sections[::2], sections[1::2], strict=True)]
    rows = [{"title": title, "text": body} for title, body in parts if body.strip()]
    rejected: list[Rejected] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pasted.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        reading = read_passages(path, Limits.for_uploads(shared.settings()), rejected.append)
        passages = tuple(islice(reading, MAX_PASSAGES + 1))
    if rejected:
        raise InputError(f"the pasted text cannot be read: {rejected[0].reason}")
    if len(passages) > MAX_PASSAGES:
        raise InputError(
            f"the pasted text has {len(text):,} characters; at most {MAX_PASSAGES} passages of {PASSAGE_WORDS} words are read. "
            "Shorten it, or add it as a corpus on the Corpora page"
        )
    if not any(c.isalnum() for passage in passages for c in passage.text):
        raise InputError("the pasted text is empty; paste some text, or switch Paste passages off to ask the corpus")
    return passages


def question(text: str) -> Question:
    """About the pasted text where the switch is on, else about the corpus.  Raises InputError as `passages_of`."""
    return Question(text, passages=passages_of(st.session_state.get(TEXT) or "") if st.session_state.get(SWITCH) else None)


def put(passages: Sequence[Passage] | None) -> None:
    """Fills the box as if a person had pasted these; None: the question is about the corpus."""
    st.session_state[SWITCH] = passages is not None
    if passages is not None:
        st.session_state[TEXT] = "\n\n".join(f"# {p.title}\n{p.text}" if p.title else p.text for p in passages)


def open_explore(question: str = "", *, corpus: str = "", passages: Sequence[Passage] | None = None, system: str = "") -> None:
    """From another page: opens Explore over a corpus, or over `passages` as if a person had pasted them, and asks the question if one is given."""
    state = st.session_state
    put(passages)
    if corpus:
        state["explore.corpus"] = corpus
    if system:
        state["explore.first.system"] = system
    if question:
        state["explore.question"] = state["explore.ask"] = question
    st.switch_page("pages/explore/page.py")


def box() -> None:
    """Part of the question's form, so that Ask sends both."""
    if st.session_state.get(SWITCH):
        st.text_area(
            "Your passages",
            key=TEXT,
            height=120,
            persist_state="session",
            placeholder="# Title of the first passage\nIts text ...",
            help="Only this text is read, and no corpus is searched. A line that begins with # gives the title of what is below it.",
        )


def switch() -> None:
    """The switch; for the worked example of a paper, with the paper's answers."""
    st.toggle("Paste passages", key=SWITCH, persist_state="session", help="Ask about a text of your own, without a corpus.")
    if st.session_state.get(SWITCH) and (example := example_of(str(st.session_state.get("explore.question") or ""))):
        st.caption(f"{escape(example.extra['paper'])}, {escape(example.extra['where'])}. {published_answers(example)}")


def published_answers(example: ReferenceQuestion) -> str:
    """The answers of each system in the paper, as Markdown."""
    parts = (f"**{escape(name)}**: {escape(', '.join(answers))}" for name, answers in example.extra["published"].items())
    return f"In the paper: {'; '.join(parts)}."
