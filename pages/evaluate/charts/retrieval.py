"""What retrieval finds: R@k and MRecall@k."""

from __future__ import annotations

import re

import pandas as pd
import plotly.graph_objects as go

from core.evaluation.published import tables_of
from pages.evaluate.charts.base import COLOURS, Chart, ChartRequest, Record, Runs, layout, published_source
from pages.ui.markup import chart_text
from storage.records.results import StoredEvaluation

MOST = 20  # runs in the chart
_AT = re.compile(r"(R|MRecall)@(\d+)")


def _of_retrievers(request: ChartRequest) -> Runs:
    """The chosen runs and those of `retrieval-eval`, which measure nothing else and so stand last in every order."""
    alone = [r for r in request.runs if r.scores and all(_AT.fullmatch(name) for name in r.scores)]
    return [*[r for r in request.chosen if r not in alone], *alone][:MOST]


def _has_k(request: ChartRequest, run: StoredEvaluation) -> bool:
    return any(_AT.fullmatch(name) and run.mean(name, request.scope) is not None for name in run.scores)


def retrieval(request: ChartRequest, kept: Runs) -> Chart:
    """Table 6: R@k (solid) and MRecall@k (dotted) of every run that has them."""
    names, scope, tables = request.names, request.scope, tables_of("retrieval")
    figure, rows, k_seen = go.Figure(), [], set[int]()
    for i, run in enumerate(kept):
        for kind, dash in (("R", "solid"), ("MRecall", "dot")):
            line = sorted(
                (int(m[2]), run.mean(name, scope)) for name in run.scores if (m := _AT.fullmatch(name)) and m[1] == kind
            )
            line = [(k, v) for k, v in line if v is not None]
            if not line:
                continue
            k_seen.update(k for k, _ in line)
            figure.add_trace(
                go.Scatter(
                    x=[k for k, _ in line],
                    y=[v for _, v in line],
                    mode="lines+markers",
                    name=f"{chart_text(names[run.id], 36)}, {kind}@k",
                    line={"dash": dash, "color": COLOURS[i % len(COLOURS)]},
                )
            )
            rows += [
                {"run": names[run.id], "metric": f"{kind}@{k}", "questions": scope, "mean": v, "source": "ours"}
                for k, v in line
            ]
    for table in tables:
        for j, system in enumerate(table.values):
            points = [
                (m[1], int(m[2]), v)
                for (name, _), v in table.values[system].items()
                if v is not None and (m := _AT.fullmatch(name))
            ]
            for kind in ("R", "MRecall"):
                line = [(k, v) for found, k, v in points if found == kind]
                if line:
                    k_seen.update(k for k, _ in line)
                    figure.add_trace(
                        go.Scatter(
                            x=[k for k, _ in line],
                            y=[v for _, v in line],
                            mode="markers",
                            marker={
                                "symbol": "diamond-open" if kind == "R" else "square-open",
                                "size": 10,
                                "color": COLOURS[-1 - j],
                                "line": {"width": 2},
                            },
                            name=f"† {chart_text(system, 30)}, {kind}@k, {table.data}",
                            visible="legendonly" if j else True,
                        )
                    )
                    rows += [
                        {
                            "run": system,
                            "metric": f"{kind}@{k}",
                            "questions": "all",
                            "mean": v,
                            "source": published_source(table),
                        }
                        for k, v in line
                    ]
    layout(
        figure,
        460,
        xaxis={
            "title": "passages (logarithmic scale)",
            "type": "log",
            "tickvals": sorted(k_seen),
            "ticktext": [str(k) for k in sorted(k_seen)],
        },
        yaxis={"title": f"share of questions, {scope}", "range": [0, 1.02]},
    )
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    caption = "R@k: at least one answer is in the top k passages. MRecall@k: all n answers are (or k of them if n > k)." + (
        " †: published results, on other data. Click the legend to show more." if tables else ""
    )
    return Chart("retrieval", "Retrieval (Table 6)", figure, pd.DataFrame(rows), caption)


CHARTS = (
    Record(
        menu="Retrieval",
        key="retrieval",
        title="Retrieval",
        applies=_has_k,
        empty="None of these runs has R@k. Measure the retrievers with: python -m core retrieval-eval --questions FILE --out RUNS",
        draw=retrieval,
        of=_of_retrievers,
    ),
)
