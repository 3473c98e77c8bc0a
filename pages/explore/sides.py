"""Two answer sets side by side: what both found, and what only one of them did."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import types as t
from core.systems import title_of
from core.text import answer_keys
from pages.ui.markup import escape


def keys_of(answer: t.Answer) -> frozenset[str]:
    """Of its text and of the words that it was read from: two answers are the same where they share one."""
    return answer_keys((answer.text, *(e.text for e in answer.evidence)))


def in_both(left: Sequence[t.Answer], right: Sequence[t.Answer]) -> tuple[frozenset[int], frozenset[int]]:
    """The positions of each side's answers that the other side has, too.  Each answer has one counterpart; of several that would do, the first."""
    free, pairs = list(range(len(right))), []
    for position, answer in enumerate(left):
        same = next((i for i in free if keys_of(answer) & keys_of(right[i])), None)
        if same is not None:
            free.remove(same)
            pairs.append((position, same))
    return frozenset(a for a, _ in pairs), frozenset(b for _, b in pairs)


def draw(first: t.Prediction, second: t.Prediction, both: int) -> None:
    """How many answers they share."""
    alone = zip(("left", "right"), (first, second))
    only = " ".join(f"Only {side}, {escape(title_of(p.system.name).lower())}: {len(p.answers) - both}." for side, p in alone)
    st.caption(f"**Side by side.** Found by both: {both}. {only} Answers match if any spelling matches.")
