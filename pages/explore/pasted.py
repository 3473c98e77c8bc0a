"""Questions about the user's own text: the pasted text becomes the question's passages, and no corpus is searched."""

from __future__ import annotations

import json
import tempfile
from itertools import islice
from pathlib import Path

import streamlit as st

from core.errors import InputError
from core.evaluation.published import example_of
from core.retrieval.readers import read_passages
from core.retrieval.readers.lines import Limits, Rejected, Source
from core.text import CHUNK_CHARS, PASSAGE_WORDS
from core.types import Passage, Question
from pages.session import shared
from pages.session.systems import MAX_PASSAGES
from pages.session.to_explore import SWITCH, TEXT
from pages.ui.markup import escape, published_answers

MAX_CHARS = 2 * MAX_PASSAGES * CHUNK_CHARS


def passages_of(text: str) -> tuple[Passage, ...]:
    """Split like a corpus; a line that begins with # is the title of the text below.  Raises InputError for a text without words, and for one
    that is too long."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text[: MAX_CHARS + 1].splitlines():
        marks, title = line[: len(line) - len(line.lstrip("#"))], line.lstrip("#")
        if marks and title[:1] in (" ", "\t") and title.strip():
            parts.append((title.strip(), []))
        else:
            parts[-1][1].append(line)
    rows = [{"title": title, "text": body} for title, lines in parts if (body := "\n".join(lines).strip())]
    rejected: list[Rejected] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pasted.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        reading = read_passages(Source(path, Limits.for_uploads(shared.settings()), rejected.append))
        passages = tuple(islice(reading, MAX_PASSAGES + 1))
    if rejected:
        raise InputError(f"the pasted text cannot be read: {rejected[0].reason}")
    if len(passages) > MAX_PASSAGES or len(text) > MAX_CHARS:
        raise InputError(
            f"the pasted text has {len(text):,} characters; at most {MAX_PASSAGES} passages of {PASSAGE_WORDS} words are read. "
            "Shorten it, or add it as a corpus on the Corpora page"
        )
    if not any(c.isalnum() for passage in passages for c in passage.text):
        raise InputError("the pasted text is empty; paste some text, or switch Paste passages off to ask the corpus")
    return passages


def question(text: str) -> Question:
    """A question about the pasted text if the switch is on, else about the corpus.  Raises InputError as `passages_of`."""
    return Question(text, passages=passages_of(st.session_state.get(TEXT) or "") if st.session_state.get(SWITCH) else None)


def box() -> None:
    """The text box, which is part of the question's form, so that Ask sends both."""
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
    """The switch.  For a paper's worked example it comes with the paper's answers."""
    st.toggle("Paste passages", key=SWITCH, persist_state="session", help="Ask about a text of your own, without a corpus.")
    if st.session_state.get(SWITCH) and (example := example_of(str(st.session_state.get("explore.question") or ""))):
        st.caption(f"{escape(example.extra['paper'])}, {escape(example.extra['where'])}. {published_answers(example)}")
