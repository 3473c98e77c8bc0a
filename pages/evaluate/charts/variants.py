"""A system beside its own variants: ablations, zero-shot runs, ways of decoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.evaluation.published import PublishedTable
from core.systems import entry_of
from core.text import listed
from pages.evaluate.charts.base import ALL, MULTI, Chart, ChartRequest, Record, Runs, all_runs, layout, published_source
from pages.ui.markup import chart_text
from storage.records.results import StoredEvaluation

ABLATION, ZERO_SHOT = "ablation", "zero-shot"
FULL = "none"


def ablations(request: ChartRequest, kept: Runs) -> Chart:
    """Table 3: the mean without each part, beside the full model's on the same questions."""
    metric, table = request.metric, request.table
    many = len({r.questions for r in kept}) > 1
    rows = [
        {
            "variant": _variant(r) + (f" · {r.questions}" if many else ""),
            "all": r.mean(metric),
            "multi": r.mean(metric, "multi"),
            "source": "ours",
            "rank": (r.questions, str(r.tags[ABLATION]) != FULL),
        }
        for r in kept
    ]
    rows.sort(key=lambda row: row["rank"])
    if table is not None:
        rows += [
            {
                "variant": f"{name} †",
                "all": table.value(name, metric),
                "multi": table.value(name, metric, "multi"),
                "source": published_source(table),
            }
            for name in table.values
        ]
    return _two_bars("ablations", "Ablations (Table 3)", metric, rows, "variant", table)


def _variant(run: StoredEvaluation) -> str:
    name = str(run.tags[ABLATION])
    return f"{run.system}, full" if name == FULL else f"{run.system} without {name}"


def variants(request: ChartRequest, kept: Runs) -> Chart:
    """Table 5: zero-shot runs (single-answer supervision only), and ways of decoding in one pass."""
    names, metric, table = request.names, request.metric, request.table
    rows: list[dict[str, Any]] = [
        {
            "run": names[r.id] + (" (zero-shot)" if r.tags.get(ZERO_SHOT) else " (supervised)"),
            "all": r.mean(metric),
            "multi": r.mean(metric, "multi"),
            "source": "ours",
        }
        for r in kept
    ]
    if table is not None:
        rows += [
            {
                "run": f"{n} † (zero-shot)",
                "all": table.value(n, metric),
                "multi": table.value(n, metric, "multi"),
                "source": published_source(table),
            }
            for n in table.values
        ]
    chart = _two_bars("variants", "Zero-shot and decoding variants (Table 5)", metric, rows, "run", table)
    supervised = sum(not r.tags.get(ZERO_SHOT) for r in kept)
    if table is None or not supervised:
        return chart
    warned = f" The published figures are zero-shot; {listed(supervised, 'run')} of ours saw questions with several answers."
    return replace(chart, caption=chart.caption + warned)


def _two_bars(key: str, title: str, metric: str, rows: list[dict[str, Any]], name: str, table: PublishedTable | None) -> Chart:
    figure = go.Figure()
    for scope, colour in (("all", ALL), ("multi", MULTI)):
        ours = [r for r in rows if r["source"] == "ours"]
        figure.add_trace(
            go.Bar(
                y=[chart_text(r[name], 48) for r in ours],
                x=[r[scope] for r in ours],
                orientation="h",
                name=scope,
                marker_color=colour,
                hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            )
        )
        other = [r for r in rows if r["source"] != "ours" and r[scope] is not None]
        if other:
            figure.add_trace(
                go.Scatter(
                    y=[chart_text(r[name], 48) for r in other],
                    x=[r[scope] for r in other],
                    mode="markers",
                    marker={"symbol": "diamond-open", "size": 11, "color": colour, "line": {"width": 2}},
                    name=f"† published, {scope}",
                    hovertemplate="%{y}: %{x:.3f}<extra></extra>",
                )
            )
    layout(
        figure,
        150 + 40 * len(rows),
        barmode="group",
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": metric, "rangemode": "tozero"},
    )
    caption = f"Diamonds †: {published_source(table)}; not comparable with ours." if table is not None else ""
    kept = [{k: v for k, v in r.items() if k != "rank"} for r in rows]
    return Chart(key, title, figure, pd.DataFrame(kept), caption)


CHARTS = (
    Record(
        menu="Ablations",
        key="ablations",
        title="Ablations",
        applies=lambda request, r: r.tags.get(ABLATION) is not None and r.mean(request.metric) is not None,
        empty=f"No run says which part it leaves out. Evaluate variants with: --tag '{ABLATION}=interleaving' (the full model: '{ABLATION}={FULL}')",
        draw=ablations,
        of=all_runs,
        by_metric=True,
        published="ablations",
    ),
    Record(
        menu="Zero-shot and decoding",
        key="variants",
        title="Zero-shot and decoding variants",
        applies=lambda request, r: (
            bool(r.tags.get(ZERO_SHOT) or entry_of(r.system).decoding) and r.mean(request.metric) is not None
        ),
        empty="None of these runs is zero-shot, or of fid or one of its variants. Evaluate a model trained on single answers with: "
        f"--tag {ZERO_SHOT}=true",
        draw=variants,
        of=all_runs,
        by_metric=True,
        published="zero-shot",
    ),
)
