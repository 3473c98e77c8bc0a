"""The map of a run that clustered interpretations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st

from core import types as t
from pages.ui import charts
from pages.ui.markup import short

MIN_MAPPED = 4  # interpretations, below which there is no map
MAX_NAMED = 30  # interpretations, above which a map has no names


def draw(prediction: t.Prediction, prefix: str) -> None:
    """Draws the map, unless the run clustered no interpretations, or too few for a map."""
    placed = next((e.placed for e in prediction.events if isinstance(e, t.InterpretationsClustered)), ())
    if len(placed) < MIN_MAPPED:
        return
    proposed = (e.interpretation for e in prediction.events if isinstance(e, t.InterpretationProposed))
    interpretations = [i for i in proposed if i.answer and not i.abstained and not i.failed]  # as `index` counts them
    clusters, alone = len({p.cluster for p in placed} - {-1}), sum(p.cluster < 0 for p in placed)
    counts = f"{len(placed)} interpretations, {clusters} clusters, {alone} unclustered."
    with st.expander(f"Map of the {len(placed)} interpretations", icon=":material/bubble_chart:"):
        charts.show(
            interpretation_map(placed, interpretations), f"{prefix}.map", f"Map: {counts} The passages below have the same."
        )
        st.caption(
            f"{counts} Points close together have similar questions and answers; "
            "stars mark the ones kept. The axes are the first two principal components and have no meaning of their own."
        )


def interpretation_map(placed: Sequence[t.InterpretationPlaced], interpretations: Sequence[t.Interpretation]) -> go.Figure:
    """One point for each interpretation, coloured by cluster, with the kept ones named.  `placed[i].index` is a position in
    `interpretations`, the ones that passages proposed in reading order."""
    frame = pd.DataFrame(
        {
            "x": p.x,
            "y": p.y,
            "cluster": "unclustered" if p.cluster < 0 else f"cluster {p.cluster + 1}",
            "symbol": "kept" if p.medoid else f"not kept{p.cluster // len(charts.PALETTE) or ''}",
            "answer": interpretations[p.index].answer,
            "question": short(interpretations[p.index].question, 120),
            "name": short(interpretations[p.index].answer, 28) if p.medoid else "",
        }
        for p in sorted(placed, key=lambda p: (p.cluster < 0, p.cluster))
    )
    no_axis: dict[str, Any] = {"showticklabels": False, "title": None, "zeroline": False}
    chart_figure = charts.figure(
        px.scatter,
        frame,
        x="x",
        y="y",
        color="cluster",
        color_discrete_map={"unclustered": charts.NEUTRAL},
        symbol="symbol",
        symbol_map={"kept": "star"},
        text="name" if len(placed) <= MAX_NAMED else None,
        hover_name="answer",
        hover_data={"question": True, "x": False, "y": False, "name": False, "symbol": False},
        layout={"xaxis": no_axis, "yaxis": no_axis},
        chars=120,
    )
    chart_figure.update_traces(textposition="top center", marker_size=12)
    return chart_figure
