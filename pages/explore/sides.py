"""Two answer sets side by side, aligned by answer: what both found, and what only one of them did."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import types as t
from core.text import answer_keys
from pages.ui.formatting import percent
from pages.ui.markup import escape


def keys_of(answer: t.Answer) -> frozenset[str]:
    """Of its text and of the words that it was read from: two answers are the same where they share one."""
    return answer_keys((answer.text, *(e.text for e in answer.evidence)))


def align(left: Sequence[t.Answer], right: Sequence[t.Answer]) -> list[tuple[int | None, int | None]]:
    """Positions in both; None where a side lacks the answer.  Those of both first, in the order of the left one, then only left, then only right.

    Each answer is in one pair; of several that would do, the first.
    """
    free = list(range(len(right)))
    both: list[tuple[int | None, int | None]] = []
    alone: list[tuple[int | None, int | None]] = []
    for position, answer in enumerate(left):
        keys = keys_of(answer)
        same = next((i for i in free if keys & keys_of(right[i])), None)
        if same is None:
            alone.append((position, None))
        else:
            free.remove(same)
            both.append((position, same))
    return [*both, *alone, *((None, i) for i in free)]


def in_both(left: Sequence[t.Answer], right: Sequence[t.Answer]) -> tuple[frozenset[int], frozenset[int]]:
    """The positions of each side's answers that the other side has, too."""
    pairs = [(a, b) for a, b in align(left, right) if a is not None and b is not None]
    return frozenset(a for a, _ in pairs), frozenset(b for _, b in pairs)


def draw(first: t.Prediction, second: t.Prediction) -> None:
    """The table of both answer sets."""
    pairs = align(first.answers, second.answers)
    both = sum(a is not None and b is not None for a, b in pairs)
    left, right = (sum(pair[side] is None for pair in pairs) for side in (1, 0))
    st.subheader("Side by side", anchor=False)
    st.caption(f"{both} in both, {left} only left, {right} only right. Answers are the same where they share a spelling.")
    if not pairs:
        return
    rows = [f"| found by | {_name(first)} | {_name(second)} |", "|---|---|---|"]
    for a, b in pairs:
        where = "both" if a is not None and b is not None else "only left" if b is None else "only right"
        colour = "green" if where == "both" else "orange"
        cells = (_cell(first, a), _cell(second, b))
        rows.append(f"| :{colour}-badge[{where}] | {cells[0]} | {cells[1]} |")
    st.markdown("\n".join(rows))


def _name(prediction: t.Prediction) -> str:
    return escape(prediction.system.name)


def _cell(prediction: t.Prediction, position: int | None) -> str:
    if position is None:
        return ":gray[–]"
    answer = prediction.answers[position]
    return f"**{escape(answer.text)}** {percent(answer.probability)}"
