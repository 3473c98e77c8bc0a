"""The map of interpretations: a point each, coloured by cluster, medoids marked; the pair shown on hover."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from core import types as t
from pages.ui.markup import chart_text

# Okabe and Ito's palette, told apart without colour vision; after eight clusters the symbols change
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "pentagon")
ALONE = "#9AA0A6"
HEIGHT, LABEL = 420, 28


def cluster_name(cluster: int) -> str:
    return "unclustered" if cluster < 0 else f"cluster {cluster + 1}"


def interpretation_map(placed: Sequence[t.InterpretationPlaced], interpretations: Sequence[t.Interpretation]) -> go.Figure:
    """`placed[i].index` counts `interpretations`: those that passages proposed, in the order of reading."""
    figure = go.Figure()
    middle = sum(_span([p.x for p in placed])) / 2
    for cluster in sorted({p.cluster for p in placed}, key=lambda c: (c < 0, c)):
        some = [p for p in placed if p.cluster == cluster]
        pairs = [interpretations[p.index] for p in some]
        colour = ALONE if cluster < 0 else COLOURS[cluster % len(COLOURS)]
        figure.add_trace(
            go.Scatter(
                x=[p.x for p in some],
                y=[p.y for p in some],
                name=cluster_name(cluster),
                mode="markers+text" if len(placed) <= 30 else "markers",
                text=[chart_text(i.answer, LABEL) if p.medoid else "" for p, i in zip(some, pairs)],
                textposition=["top right" if p.x < middle else "top left" for p in some],  # inwards: nothing is cut off
                hovertext=[_hover(i, p) for p, i in zip(some, pairs)],
                hoverinfo="text",
                marker={
                    "color": colour,
                    "size": [20 if p.medoid else 10 for p in some],
                    "symbol": ["star" if p.medoid else SYMBOLS[max(0, cluster) // len(COLOURS) % len(SYMBOLS)] for p in some],
                    "opacity": [1.0 if p.medoid else 0.6 for p in some],
                    "line": {"width": 1, "color": "rgba(0,0,0,0.45)"},
                },
            )
        )
    bare = {"showticklabels": False, "title": None, "zeroline": False, "gridcolor": "rgba(128,128,128,0.2)"}
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 8, "t": 24, "b": 8},
        xaxis=bare | {"range": _span([p.x for p in placed])},
        yaxis=bare | {"range": _span([p.y for p in placed])},
        legend={"orientation": "h", "y": -0.04},
    )
    return figure


def _hover(interpretation: t.Interpretation, placed: t.InterpretationPlaced) -> str:
    kept = "medoid, kept" if placed.medoid and placed.cluster >= 0 else "kept" if placed.medoid else "not kept"
    return (
        f"<b>{chart_text(interpretation.answer, 80)}</b><br>{chart_text(interpretation.question, 120)}"
        f"<br>{cluster_name(placed.cluster)}, {kept}"
    )


def _span(values: Sequence[float]) -> list[float]:
    """A little wider than the values; around a single one, so that it stands in the middle."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    pad = 0.15 * (high - low) or 0.5
    return [low - pad, high + pad]
