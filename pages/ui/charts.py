"""Charts of all pages: one palette and one look, plotly express over tidy data frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st

from pages.ui.markup import chart_text, distinct

# Okabe and Ito's colours, distinguishable without colour vision, with a grey and a brown for more
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#8C6D31")
NEUTRAL = "#9AA0A6"
FONT = "Arial, Helvetica, sans-serif"  # a saved image has no web fonts: with those of the page its labels would be cut
LABEL_CHARS = 44
BAR_PIXELS, GAP_PIXELS = 13, 14  # of a horizontal bar, and between two groups of them


def figure(
    draw: Callable[..., go.Figure],
    frame: pd.DataFrame,
    *,
    labels: Mapping[str, str] | None = None,
    layout: Mapping[str, Any] | None = None,
    chars: int = LABEL_CHARS,
    **marks: Any,
) -> go.Figure:
    """`draw`: bar, line or scatter of plotly express; `frame`: one row per mark, its columns "low" and "high" the ends of an interval around
    the value; `marks`: plotly express's arguments; `labels`: the words for a column; `chars`: limit of each text that stays distinct.  Markup in the frame is
    drawn as text."""
    sideways = marks.get("orientation") == "h"
    cells = {cell: cell for cell in frame.to_numpy().ravel() if isinstance(cell, str)}
    # Plotly draws equal texts as one bar or line
    texts = {cell: chart_text(text, len(text)) for cell, text in distinct(cells, chars).items()}
    data = frame.map(lambda cell: texts[cell] if isinstance(cell, str) else cell)
    value = "x" if sideways else "y"
    if {"low", "high"} <= set(data) and data["low"].notna().any():
        ends = {"above": data["high"] - data[marks[value]], "below": data[marks[value]] - data["low"]}
        data = data.assign(**{name: end.fillna(0.0) for name, end in ends.items()})
        marks = {f"error_{value}": "above", f"error_{value}_minus": "below", **marks}
    if draw is px.bar:
        marks = {"barmode": "group", **marks}
    chart_figure = draw(data, color_discrete_sequence=PALETTE, labels=labels or {}, **marks)
    groups = 1 if marks.get("barmode") == "stack" else len(chart_figure.data)
    chart_figure.update_layout(
        height=120 + max(2, data[marks["y"]].nunique()) * (GAP_PIXELS + BAR_PIXELS * groups) if sideways else 420,
        font={"family": FONT},
        margin={"l": 8, "r": 44, "t": 24, "b": 8},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},  # beside the plot: above it, it would cover the legend
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": None, "traceorder": "normal"},
    )
    chart_figure.update_xaxes(automargin=True, hoverformat=".4~g", rangemode="tozero" if sideways else None)
    chart_figure.update_yaxes(automargin=True, hoverformat=".4~g", autorange="reversed" if sideways else None)
    if sideways:
        chart_figure.update_yaxes(title=None)
    if {"above", "below"} <= set(data):
        chart_figure.update_traces({f"error_{value}_color": NEUTRAL})  # seen on both themes
    chart_figure.update_layout(layout or {})
    return chart_figure


def show(chart_figure: go.Figure, key: str, alt: str) -> None:
    """The camera in its corner saves it as PNG."""
    st.plotly_chart(
        chart_figure,
        width="stretch",
        key=key,
        config={
            "displaylogo": False,
            "displayModeBar": True,
            "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
            "toImageButtonOptions": {"format": "png", "filename": f"ambiscope-{key.replace('.', '-')}", "scale": 2},
        },
        alt=alt,
    )
