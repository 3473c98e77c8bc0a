"""Where runs fail: kinds of errors, and kinds of questions."""

from __future__ import annotations

from functools import partial

import pandas as pd
import plotly.graph_objects as go

from pages.evaluate.charts.base import COLOURS, GROUPS, Chart, ChartRequest, Record, Runs, layout
from pages.ui.markup import chart_text

BUCKETS = {
    "missed": "missed, though in the passages",
    "not_retrieved": "not retrieved",
    "alias_mismatch": "alias mismatch",
    "spurious": "spurious",
    "duplicate": "duplicate",
    "stopped_early": "questions stopped too early",
    "ran_on": "questions that ran too long",
}


def errors(request: ChartRequest, kept: Runs) -> Chart:
    """Answers that went wrong by bucket, and questions that were stopped too early or ran on."""
    rows = [
        {"run": request.names[run.id], "error": BUCKETS[bucket], "count": request.errors[run.id][bucket]}
        for run in kept
        for bucket in BUCKETS
        if bucket in request.errors[run.id]
    ]
    figure = go.Figure()
    for i, label in enumerate(BUCKETS.values()):
        some = [r for r in rows if r["error"] == label]
        figure.add_trace(
            go.Bar(
                y=[chart_text(str(r["run"]), 44) for r in some],
                x=[r["count"] for r in some],
                orientation="h",
                name=label,
                marker_color=COLOURS[i % len(COLOURS)],
                hovertemplate="%{y}: %{x}<extra>" + label + "</extra>",
            )
        )
    runs = len({r["run"] for r in rows})
    layout(
        figure,
        200 + 110 * runs,
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "answers, or questions where the legend says so"},
    )
    caption = "Each missing answer counts as missed, not retrieved or alias mismatch. Each wrong one counts as alias mismatch, spurious or duplicate."
    return Chart("errors", "Errors", figure, pd.DataFrame(rows), caption)


def groups(request: ChartRequest, kept: Runs, by: str) -> Chart:
    """A metric for each kind of ambiguity or source."""
    metric = request.metric
    figure, rows = go.Figure(), []
    for i, run in enumerate(kept):
        own = [g for g in request.groups[by] if g.evaluation_id == run.id]
        figure.add_trace(
            go.Bar(
                x=[f"{chart_text(g.group, 30)}" for g in own],
                y=[g.mean for g in own],
                name=chart_text(request.names[run.id], 36),
                marker_color=COLOURS[i % len(COLOURS)],
                customdata=[g.n for g in own],
                hovertemplate="%{x}: %{y:.3f} over %{customdata} questions<extra></extra>",
            )
        )
        rows += [{"run": request.names[run.id], by: g.group, "n": g.n, metric: g.mean} for g in own]
    layout(figure, 420, barmode="group", yaxis={"title": metric, "rangemode": "tozero"})
    return Chart(f"by-{by}", f"{metric} by {by}", figure, pd.DataFrame(rows))


CHARTS = (
    Record(
        menu="Errors",
        key="errors",
        title="Errors",
        applies=lambda request, r: any(bucket in request.errors.get(r.id, {}) for bucket in BUCKETS),
        empty="None of these runs counted its errors. Evaluate it again with this version.",
        draw=errors,
    ),
    *(
        Record(
            menu="Groups",
            key=f"by-{by}",
            title=f"{{metric}} by {by}",
            applies=lambda request, r, by=by: any(g.evaluation_id == r.id for g in request.groups[by]),  # type: ignore[misc]
            empty=f"The questions of these runs have no {by}.",
            draw=partial(groups, by=by),
            by_metric=True,
        )
        for by in GROUPS
    ),
)
