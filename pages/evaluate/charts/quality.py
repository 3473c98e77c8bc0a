"""How good runs are: quality, seconds, training-set size, precision and recall."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from core.evaluation.published import PublishedTable
from pages.evaluate.charts.base import (
    ALL,
    COLOURS,
    MULTI,
    PUBLISHED,
    SCOPES,
    Chart,
    ChartRequest,
    Record,
    Runs,
    all_runs,
    bars,
    format_score,
    layout,
    published_source,
)
from pages.ui.markup import chart_text
from storage.records.results import Score, StoredEvaluation

ROW = 44  # pixels a run


def quality(request: ChartRequest, kept: Runs) -> Chart:
    """Bars with 95% intervals, full and multi; the papers' figures as diamonds."""
    names, metric, table = request.names, request.metric, request.table
    figure, rows = go.Figure(), []
    for scope, colour in (("all", ALL), ("multi", MULTI)):
        scores = [r.scores.get(metric, {}).get(scope) for r in kept]
        figure.add_trace(
            bars(
                [names[r.id] for r in kept],
                [s.mean if s else None for s in scores],
                name=SCOPES[scope],
                marker_color=colour,
                error_x=_ends(scores),
                text=[format_score(metric, s.mean) if s else "" for s in scores],
                textposition="inside",
                textfont={"size": 12, "color": "#000"},
                constraintext="none",
                insidetextanchor="start",
                hovertemplate="%{y}: %{x:.3f}<extra>" + SCOPES[scope] + "</extra>",
            )
        )
        rows += [_row(names[r.id], metric, scope, s, "ours") for r, s in zip(kept, scores, strict=True) if s]
    count = len(kept)
    if table is not None:
        systems = [s for s in table.values if table.value(s, metric) is not None]
        for scope, colour in (("all", ALL), ("multi", MULTI)):
            points = [(s, v) for s in systems if (v := table.value(s, metric, scope)) is not None]
            if points:
                figure.add_trace(_diamonds(table, points, scope, colour))
                rows += [_published_row(s, metric, scope, v, table) for s, v in points]
        count += len(systems)
    layout(
        figure,
        150 + ROW * count,
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": metric, "rangemode": "tozero"},
    )
    caption = "Bars show means with 95% bootstrap intervals over questions." + (
        f" Diamonds: {published_source(table)}; not comparable with ours." if table is not None else ""
    )
    return Chart("quality", f"Quality: {metric}", figure, pd.DataFrame(rows), caption)


def _ends(scores: Sequence[Score | None]) -> dict[str, object]:
    up = [s.high - s.mean if s and s.high is not None else 0.0 for s in scores]
    down = [s.mean - s.low if s and s.low is not None else 0.0 for s in scores]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "color": PUBLISHED}


def _row(name: str, metric: str, scope: str, score: Score, where: str) -> dict[str, object]:
    return {
        "run": name,
        "metric": metric,
        "questions": scope,
        "n": score.n,
        "mean": score.mean,
        "low": score.low,
        "high": score.high,
        "source": where,
    }


def _published_row(system: str, metric: str, scope: str, value: float, table: PublishedTable) -> dict[str, object]:
    return {
        "run": system,
        "metric": metric,
        "questions": scope,
        "n": None,
        "mean": value,
        "low": None,
        "high": None,
        "source": published_source(table),
    }


def _diamonds(table: PublishedTable, points: Sequence[tuple[str, float]], scope: str, colour: str) -> go.Scatter:
    return go.Scatter(
        y=[f"{chart_text(s, 40)} †" for s, _ in points],
        x=[v for _, v in points],
        mode="markers",
        marker={"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}},
        name=f"† published, {scope}",
        hovertemplate="%{y}: %{x:.3f}<extra>" + chart_text(published_source(table), 90) + "</extra>",
    )


def latency(request: ChartRequest, kept: Runs) -> Chart:
    """AmbigPrompt's Figure 4a: seconds against F1; the circle's area goes with the number of parameters."""
    names, metric, scope, table = request.names, request.metric, request.scope, request.table
    figure, rows = go.Figure(), []
    for i, run in enumerate(kept):
        value = run.mean(metric, scope)
        rows.append(
            {
                "run": names[run.id],
                "seconds (median)": run.seconds_median,
                "seconds (p95)": run.seconds_p95,
                metric: value,
                "parameters": run.parameters,
                "peak memory (MB)": run.peak_memory_mb,
                "source": "ours",
            }
        )
        figure.add_trace(
            _circle(names[run.id], run.seconds_median or 0.0, value or 0.0, run.parameters, COLOURS[i % len(COLOURS)])
        )
    if table is not None:
        for system in table.values:
            seconds, value = table.value(system, "seconds"), table.value(system, metric, scope)
            if seconds and value is not None:
                size = table.value(system, "parameters")
                figure.add_trace(_circle(f"{system} †", seconds, value, size, PUBLISHED, published_source(table)))
                memory = table.value(system, "memory GB")
                rows.append(
                    {
                        "run": system,
                        "seconds (median)": seconds,
                        metric: value,
                        "parameters": size,
                        "peak memory (MB)": memory * 1000 if memory else None,
                        "source": published_source(table),
                    }
                )
    layout(
        figure,
        460,
        showlegend=False,
        xaxis={"title": "seconds per question (median, logarithmic scale)", "type": "log"},
        yaxis={"title": f"{metric}, {scope}"},
    )
    caption = "The area of a circle shows the number of parameters; a small cross means that it is unknown." + (
        f" Open circles †: {published_source(table)}, timed on the authors' machine." if table is not None else ""
    )
    return Chart("latency", "Time and quality (Figure 4a)", figure, pd.DataFrame(rows), caption)


def _circle(name: str, x: float, y: float, parameters: float | None, colour: str, published: str = "") -> go.Scatter:
    size = 10.0 if not parameters else min(70.0, max(9.0, 30 * math.sqrt(parameters / 220e6)))
    symbol = "circle-open" if published else "circle" if parameters else "cross"
    about = f"{parameters:,.0f} parameters" if parameters else "number of parameters unknown"
    return go.Scatter(
        x=[x],
        y=[y],
        mode="markers+text",
        text=[chart_text(name, 30)],
        textposition="top center",
        marker={"size": size, "symbol": symbol, "color": colour, "opacity": 0.8, "line": {"width": 2, "color": colour}},
        hovertemplate=f"{chart_text(name, 60)}<br>%{{x:.3f}} s, %{{y:.3f}}<br>{about}<extra>{chart_text(published, 90)}</extra>",
    )


TRAINING = "training questions"


def _trained_on(run: StoredEvaluation) -> float | None:
    size = run.tags.get(TRAINING)
    return float(size) if isinstance(size, int | float) and not isinstance(size, bool) else None


def training_size(request: ChartRequest, kept: Runs) -> Chart:
    """Figure 4b: runs that say on how many questions their weights were trained, a line a system."""
    metric = request.metric
    found: dict[str, list[tuple[float, StoredEvaluation]]] = {}
    for run in kept:
        found.setdefault(f"{run.system} · {run.questions}", []).append((_trained_on(run) or 0.0, run))
    figure, rows = go.Figure(), []
    for i, (name, points) in enumerate(sorted(found.items())):
        for scope, dash in (("all", "solid"), ("multi", "dot")):
            line = sorted(((x, r.scores[metric][scope]) for x, r in points if scope in r.scores[metric]), key=lambda p: p[0])
            if not line:
                continue
            ends = _ends([s for _, s in line])
            figure.add_trace(
                go.Scatter(
                    x=[x for x, _ in line],
                    y=[s.mean for _, s in line],
                    error_y=ends,
                    mode="lines+markers",
                    name=f"{chart_text(name, 40)}, {scope}",
                    line={"dash": dash, "color": COLOURS[i % len(COLOURS)]},
                )
            )
            rows += [{TRAINING: x, **_row(name, metric, scope, s, "ours")} for x, s in line]
    layout(
        figure,
        420,
        xaxis={"title": f"{TRAINING} (logarithmic scale)", "type": "log"},
        yaxis={"title": metric, "rangemode": "tozero"},
    )
    return Chart(
        "training-size", "Training-set size (Figure 4b)", figure, pd.DataFrame(rows), "Lines: means with 95% intervals."
    )


def answers(request: ChartRequest, kept: Runs) -> Chart:
    """Figure 5: precision, recall, and the number of answers beside the references'."""
    names, scope = request.names, request.scope
    figure, rows = go.Figure(), []
    labels = [chart_text(names[r.id], 44) for r in kept]
    for metric, colour in (("precision", ALL), ("recall", MULTI)):
        values = [r.mean(metric, scope) for r in kept]
        figure.add_trace(
            go.Bar(
                x=values,
                y=labels,
                orientation="h",
                name=metric,
                marker_color=colour,
                hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            )
        )
    for metric, symbol, name in (
        ("answers", "circle", "answers given"),
        ("reference answers", "line-ns-open", "reference answers"),
    ):
        figure.add_trace(
            go.Scatter(
                x=[r.mean(metric, scope) for r in kept],
                y=labels,
                xaxis="x2",
                mode="markers",
                name=f"{name} (upper axis)",
                marker={
                    "symbol": symbol,
                    "size": 13,
                    "color": PUBLISHED if symbol == "circle" else "#3c9a5f",
                    "line": {"width": 3},
                },
            )
        )
    for run in kept:
        rows.append(
            {
                "run": names[run.id],
                "questions": scope,
                **{m: run.mean(m, scope) for m in ("precision", "recall", "answers", "reference answers")},
            }
        )
    layout(
        figure,
        170 + ROW * len(kept),
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "precision and recall", "range": [0, 1]},
        xaxis2={
            "overlaying": "x",
            "side": "top",
            "title": "number of answers",
            "tickmode": "auto",
            "nticks": 6,
            "rangemode": "tozero",
            "showgrid": False,
        },
    )
    figure.update_layout(legend={"y": -0.25, "yanchor": "top"})
    return Chart(
        "answers",
        "Precision, recall and number of answers (Figure 5)",
        figure,
        pd.DataFrame(rows),
        f"Means over {SCOPES[scope]}.",
    )


CHARTS = (
    Record(
        menu="Quality",
        key="quality",
        title="Quality",
        applies=lambda request, r: r.mean(request.metric) is not None or r.mean(request.metric, "multi") is not None,
        empty="None of these runs has the metric {metric}. Choose another metric or other runs.",
        draw=quality,
        by_metric=True,
        published="quality",
    ),
    Record(
        menu="Time and quality",
        key="latency",
        title="Time and quality",
        applies=lambda request, r: bool(r.seconds_median) and r.mean(request.metric, request.scope) is not None,
        empty="None of these runs has both its time and {metric} for {scope}.",
        draw=latency,
        by_metric=True,
        published="quality",
    ),
    Record(
        menu="Training-set size",
        key="training-size",
        title="Training-set size",
        applies=lambda request, r: _trained_on(r) is not None and r.mean(request.metric) is not None,
        empty=f"No run says how many questions its model was trained on. Evaluate checkpoints with: --tag '{TRAINING}=100'",
        draw=training_size,
        of=all_runs,
        by_metric=True,
    ),
    Record(
        menu="Precision and recall",
        key="answers",
        title="Precision, recall and number of answers",
        applies=lambda request, r: any(r.mean(m, request.scope) is not None for m in ("precision", "recall")),
        empty="None of these runs has precision and recall.",
        draw=answers,
    ),
)
