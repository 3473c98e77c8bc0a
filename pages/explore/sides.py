"""Two answer sets side by side: their common answers, and those of only one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import types as t
from core.text import answer_keys
from pages.ui.markup import escape


def keys_of(answer: t.Answer) -> frozenset[str]:
    """Keys of an answer's text and of the words that it was read from.  Two answers are the same if they share one."""
    return answer_keys((answer.text, *(e.text for e in answer.evidence)))


def in_both(first: Sequence[t.Answer], second: Sequence[t.Answer]) -> tuple[frozenset[int], frozenset[int]]:
    """The positions of each set's answers that the other has too.  Each answer has one counterpart, the first of several that
    match."""
    pairs: dict[int, int] = {}  # position in `second` -> position in `first`
    for position, answer in enumerate(first):
        matches = (i for i, other in enumerate(second) if i not in pairs and keys_of(answer) & keys_of(other))
        if (match := next(matches, None)) is not None:
            pairs[match] = position
    return frozenset(pairs.values()), frozenset(pairs)


def draw(first: t.Prediction, second: t.Prediction, shared: int) -> None:
    """`shared`: the number of answers that both have."""
    sides = zip(("left", "right"), (first, second))
    only = " ".join(f"Only {side}, {escape(p.system.name)}: {len(p.answers) - shared}." for side, p in sides)
    st.caption(f"**Side by side.** Found by both: {shared}. {only} Answers match if any spelling matches.")
