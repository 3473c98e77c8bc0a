"""What a run cost: its time by part, and the calls of a language model with their tokens."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from core import types as t
from core.evaluation.cost import PARTS, cost_of, times_of
from core.text import listed
from pages.app.formatting import seconds

COLOURS = dict(zip(PARTS, ("#2f7ed8", "#3c9a5f", "#a35fb0", "#d98032", "#9a9a9a"), strict=True))  # as in the charts of Evaluate


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


def draw(prediction: t.Prediction, prefix: str) -> None:
    """One stacked bar; nothing for a run without times."""
    parts = times_of(prediction)
    if not parts:
        return
    said = " · ".join(f"{part} {seconds(value)}" for part, value in parts.items())
    figure = go.Figure(
        [
            go.Bar(
                x=[value],
                y=[""],
                name=part,
                orientation="h",
                marker_color=COLOURS[part],
                hovertemplate=f"{part}: %{{x:.2f}} s<extra></extra>",
            )
            for part, value in parts.items()
        ]
    )
    figure.update_layout(
        barmode="stack",
        height=90,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        showlegend=False,
        xaxis={"ticksuffix": " s", "fixedrange": True},
        yaxis={"visible": False, "fixedrange": True},
    )
    st.caption(f"Time: {said}")
    st.plotly_chart(figure, key=f"{prefix}.times", config={"displayModeBar": False}, alt=f"Time by part of the run. {said}")
    if said := calls(prediction):
        st.caption(said)
