"""What a run cost: its time by part, and the calls of a language model with their tokens."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import types as t
from core.evaluation.cost import PARTS, cost_of, times_of
from core.text import listed
from pages.ui.formatting import seconds

WIDTH, HEIGHT = 1000, 16
# part -> the name that Streamlit has for its colour, the colour as in the charts of Evaluate
COLOURS = {
    part: (name, colour)
    for part, name, colour in zip(
        PARTS,
        ("blue", "green", "violet", "orange", "gray"),
        ("#2f7ed8", "#3c9a5f", "#a35fb0", "#d98032", "#9a9a9a"),
        strict=True,
    )
}


def calls(prediction: t.Prediction) -> str:
    """In words; empty where no model was called.

    >>> info = t.SystemInfo("verdict")
    >>> events = (t.ModelCalled("interpret", 1, 90, 10, 0.1), t.ModelCalled("verify", 1, 1000, 1, 0.1))
    >>> calls(t.Prediction(t.Question("q"), info, (), (), (), (), 0.2, events))
    '2 model calls: 1,090 tokens read, 11 written'
    """
    cost = cost_of(prediction)
    if not cost.model_calls:
        return ""
    tokens = f": {cost.prompt_tokens:,} tokens read, {cost.completion_tokens:,} written" if cost.prompt_tokens else ""
    return f"{listed(int(cost.model_calls), 'model call')}{tokens}"


def draw(prediction: t.Prediction, side: str = "") -> None:
    """Its times as one stacked bar; nothing for a run without times.  `side`: which of two it is, for the name of the picture's button."""
    parts = times_of(prediction)
    if not parts:
        return
    said = " · ".join(f":{COLOURS[part][0]}[:material/square:] {part} {seconds(value)}" for part, value in parts.items())
    st.caption(f"Time: {said}")
    st.image(
        bar(parts),
        width="stretch",
        alt=f"Time by part of the run{side}, as a stacked bar; the line above has its numbers",
    )
    if said := calls(prediction):
        st.caption(said)


def bar(parts: Mapping[str, float]) -> str:
    """An SVG of WIDTH to HEIGHT.  No chart: its scripts would keep the browser busier than the models keep the server."""
    whole, at, boxes = sum(parts.values()), 0.0, []
    for part, value in parts.items():
        wide = WIDTH * value / whole
        boxes.append(f'<rect x="{at:.1f}" width="{wide:.1f}" height="{HEIGHT}" fill="{COLOURS[part][1]}"/>')
        at += wide
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(boxes)}</svg>'
