"""Beside the form: search the corpus and read passages.  Each search and each opened passage is logged with the item."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from core.errors import AmbiscopeError, InputError
from core.text import find_spans, listed
from core.types import Passage
from pages.annotate.state import Work
from pages.session import place, shared
from pages.ui.keys import BACK
from pages.ui.markup import around, escape, full_label, highlighted, short

MAX_RESULTS = 10


def look_up(work: Work, passage_id: str) -> Passage | None:
    """A passage by id: one seen before, the item's own, one that the systems read, or one in the project's corpus."""
    if passage_id not in work.seen_passages and not work.includes_predictions:
        work.includes_predictions = True
        work.seen_passages |= {p.id: p for p in work.item.passages or ()}
        with suppress(AmbiscopeError):
            work.seen_passages |= {p.id: p for p in place.store().items.passages_read(work.task.item, work.user)}
    if passage_id not in work.seen_passages and work.item.passages is None:
        try:
            work.seen_passages[passage_id] = shared.engine().corpus(work.project.corpus or None).store.get(passage_id)
        except AmbiscopeError:
            return None
    return work.seen_passages.get(passage_id)


def title(work: Work, passage_id: str) -> str:
    passage = look_up(work, passage_id)
    return short(passage.title or passage.id, 60) if passage else passage_id


# ---------------------------------------------------------------- callbacks


def _search(work: Work, text: str) -> None:
    work.query = " ".join(text.split())
    work.results, work.reading, work.problem = None, None, None
    work.count_time()
    if not work.query:
        return
    if len(work.query) > shared.settings().max_question_chars:
        raise InputError("the search is too long; use a few words")
    results = shared.engine().corpus(work.project.corpus or None).search(work.query, MAX_RESULTS)
    place.store().drafts.log_search(work.task.item, work.user, work.stage, work.query)
    work.results = results
    work.seen_passages |= {r.passage.id: r.passage for r in results}


def open_passage(work: Work, passage: Passage) -> None:
    """Callback: shows the passage in this pane."""
    work.reading = passage
    note_opened(work, passage)


def note_opened(work: Work, passage: Passage) -> None:
    """Counts a passage as read.  Raises the store's errors, and then it doesn't count."""
    work.seen_passages[passage.id] = passage
    work.count_time()
    place.store().drafts.log_view(work.task.item, work.user, work.stage, passage.id, passage.title)
    work.opened_ids.add(passage.id)


def _back(work: Work) -> None:
    work.reading = None


# ---------------------------------------------------------------- drawing


def draw(work: Work, answers: list[str], below: Callable[[Work, Passage], None] | None) -> None:
    """`answers` are marked in an opened passage; `below` is drawn under it."""
    if work.reading is not None:
        _draw_passage(work, work.reading, answers)
        if below is not None:
            below(work, work.reading)
        return
    if (passages := work.item.passages) is not None:
        st.markdown(f"**{listed(len(passages), 'passage')} of this question**")
        for passage in passages:
            _row(work, passage)
        return
    work.field(
        "Search the passages",
        ("query",),
        work.query,
        _search,
        type="search",
        placeholder="Type a few words and press Enter",
        max_chars=500,
        icon=":material/search:",
        live=False,
    )
    if work.results is None:
        st.caption("Look for every reading of the question: other years, places, versions. Only opened passages count as read.")
    elif not work.results:
        st.info("No passage matches. Try other words.")
    for result in work.results or ():
        _row(work, result.passage)
    if work.opened_ids:
        st.caption("Opened so far: " + "; ".join(escape(title(work, i)) for i in sorted(work.opened_ids)))


def _row(work: Work, passage: Passage) -> None:
    with st.container(border=True, key=work.key("result", passage.id)), st.container(horizontal=True):
        mark = ":green[:material/done:] " if passage.id in work.opened_ids else ""
        words = [word for word in work.query.split() if len(word) > 3]
        with st.container():
            st.markdown(f"{mark}**{escape(short(passage.title or passage.id, 80))}**")
            first_match = sorted(span for word in words for span in find_spans(passage.text, word))[:1]
            st.caption(around(passage.text, first_match, 70))
        work.button(full_label("Open", passage.title or passage.id), ("open", passage.id), open_passage, passage)


def _draw_passage(work: Work, passage: Passage, answers: list[str]) -> None:
    work.button(
        "Back to the search results" if work.item.passages is None else "Back to the passages",
        ("back",),
        _back,
        icon=":material/arrow_back:",
        shortcut=None if work.stage == "judging" else BACK,  # there B is the second set
    )
    st.markdown(f"**{escape(passage.title or passage.id)}**")
    st.markdown(marked_text(passage, answers))
    st.caption(f"Passage {escape(passage.id)}")


def marked_text(passage: Passage, answers: list[str]) -> str:
    """The whole text as Markdown, with these answers marked."""
    return highlighted(passage.text, [span for answer in answers for span in find_spans(passage.text, answer)])
