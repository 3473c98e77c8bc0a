"""Who stands on a passage: VerDICt's grounded figures, where interpretations go wrong, and what they cost."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from pages.evaluate.charts.base import ALL, COLOURS, MULTI, Chart, ChartRequest, Record, Runs, layout, published_source
from pages.ui.markup import chart_text

GROUNDED = ("G-precision", "G-recall", "G-F1", "Sufficient%", "ungrounded precision", "ungrounded recall")


def grounded(request: ChartRequest, kept: Runs) -> Chart:
    """VerDICt's Tables 2 and 4: grounded and ungrounded shares."""
    names, scope, table = request.names, request.scope, request.table
    metrics = [m for m in GROUNDED if any(r.mean(m, scope) is not None for r in kept)]
    figure, rows = go.Figure(), []
    for i, run in enumerate(kept):
        colour = COLOURS[i % len(COLOURS)]
        figure.add_trace(
            go.Bar(x=metrics, y=[run.mean(m, scope) for m in metrics], name=chart_text(names[run.id], 36), marker_color=colour)
        )
        every = {m: run.mean(m, scope) for m in ("interpretations", *GROUNDED)}
        rows.append({"run": names[run.id], "questions": scope, **every, "source": "ours"})
    if table is not None:
        for j, system in enumerate(table.values):
            points = [(m, v) for m in metrics if (v := table.value(system, m)) is not None]
            if points:
                figure.add_trace(
                    go.Scatter(
                        x=[m for m, _ in points],
                        y=[v for _, v in points],
                        mode="markers",
                        marker={
                            "symbol": "diamond-open",
                            "size": 11,
                            "color": COLOURS[-1 - j % len(COLOURS)],
                            "line": {"width": 2},
                        },
                        name=f"† {chart_text(system, 36)}",
                        visible=True if system.startswith("VerDICt") else "legendonly",
                    )
                )
            every = {m: table.value(system, m) for m in ("interpretations", *GROUNDED)}
            rows.append({"run": system, "questions": "all", **every, "source": published_source(table)})
    layout(figure, 440, barmode="group", yaxis={"range": [0, 1.02], "title": "share"})
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    caption = f"Diamonds †: {published_source(table)}. Click the legend to show more." if table is not None else ""
    return Chart("grounded", "Grounded interpretations (VerDICt, Tables 2 and 4)", figure, pd.DataFrame(rows), caption)


def judged(request: ChartRequest, kept: Runs) -> Chart:
    """VerDICt's Figure 3: interpretations by what their passage is, and how many of them are right."""
    rows = [
        {"run": request.names[r.id], "passage": cell, "interpretations": found["n"], "right": found["right"]}
        for r in kept
        for cell, found in request.summaries[r.id]["judged"].items()
    ]
    figure = go.Figure()
    for part, colour in (("right", ALL), ("wrong", MULTI)):
        figure.add_trace(
            go.Bar(
                y=[f"{chart_text(str(r['run']), 30)}: {r['passage']}" for r in rows],
                x=[r["right"] if part == "right" else r["interpretations"] - r["right"] for r in rows],
                orientation="h",
                name=part,
                marker_color=colour,
            )
        )
    layout(
        figure,
        150 + 30 * len(rows),
        barmode="stack",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "interpretations"},
    )
    return Chart("judged", "Where interpretations go wrong (VerDICt, Figure 3)", figure, pd.DataFrame(rows))


def cost(request: ChartRequest, kept: Runs) -> Chart:
    """VerDICt's Table 1: calls a question, and seconds in retriever and model."""
    rows = [{"run": request.names[r.id], **request.summaries[r.id]["cost"]} for r in kept]
    figure = go.Figure()
    for field, name, colour in (("retriever_calls", "searches", ALL), ("model_calls", "model calls", MULTI)):
        figure.add_trace(
            go.Bar(
                y=[chart_text(str(r["run"]), 44) for r in rows],
                x=[r.get(field, 0) for r in rows],
                orientation="h",
                name=name,
                marker_color=colour,
                customdata=[[r.get("seconds", 0.0), r.get("model_seconds", 0.0)] for r in rows],
                hovertemplate="%{y}: %{x:.2f} per question; %{customdata[0]:.2f} s, of which %{customdata[1]:.2f} s in the model<extra></extra>",
            )
        )
    layout(
        figure,
        150 + 44 * len(rows),
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "mean calls per question"},
    )
    return Chart("cost", "Calls and time (VerDICt, Table 1)", figure, pd.DataFrame(rows))


CHARTS = (
    Record(
        menu="Grounding",
        key="grounded",
        title="Grounded interpretations",
        applies=lambda request, r: any(r.mean(m, request.scope) is not None for m in GROUNDED),
        empty="None of these runs was judged. Evaluate again with a grounding judge (--judge references, reader or language-model).",
        draw=grounded,
        metrics=GROUNDED,
        published="grounded",
    ),
    Record(
        menu="Grounding",
        key="judged",
        title="Where interpretations go wrong",
        applies=lambda request, r: bool(request.summaries[r.id].get("judged")),
        empty="None of these runs was judged on both relevance and answerability.",
        draw=judged,
    ),
    Record(
        menu="Grounding",
        key="cost",
        title="Calls and time",
        applies=lambda request, r: bool(request.summaries[r.id].get("cost")),
        empty="None of these runs counted its calls. Evaluate again with this version.",
        draw=cost,
    ),
)
