"""The reliability diagram: what was said with a probability, and which share of it was so."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from core.metrics.calibration import by_chance
from pages.evaluate.charts.base import COLOURS, PUBLISHED, Chart, ChartRequest, Record, Runs, layout
from pages.ui.markup import chart_text
from storage.records.results import StoredEvaluation

KEY, TITLE = "reliability", "Reliability of probabilities"
DASHES = {"answer": "solid", "[EOI]": "dot", "evidence": "dashdot"}


def missing(run: StoredEvaluation) -> str:
    """Why a run has no diagram."""
    if run.failed and run.failed == run.n:
        return "every question failed"
    if "Brier" not in run.scores:
        return "stored without probabilities by an earlier version; evaluate again"
    return "no answer with a probability to a question with reference answers"


def reliability(request: ChartRequest, runs: Runs) -> Chart:
    """Of what was said with a probability, which share was so; the diagonal is where both are equal."""
    names = request.names
    known = {(run.id, said): own for run in runs for said, own in (request.summaries[run.id].get("reliability") or {}).items()}
    drawn = list(dict.fromkeys(key for key, _ in known))
    without = "; ".join(f"{names[run.id]}: {missing(run)}" for run in runs if run.id not in drawn)
    if not known:
        return Chart(KEY, TITLE, None, empty=f"None of these runs has probabilities. {without}.")
    figure, rows = go.Figure(), []
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", name="perfectly calibrated", line={"dash": "dash", "color": PUBLISHED})
    )
    for (key, said), own in known.items():
        bins = own["bins"]
        chance = by_chance([(b["n"], b["said"]) for b in bins])
        figure.add_trace(
            go.Scatter(
                x=[b["said"] for b in bins],
                y=[b["so"] for b in bins],
                mode="lines+markers",
                # the more often something was said, the larger its point
                marker={"size": [6 + 18 * (b["n"] / own["n"]) ** 0.5 for b in bins]},
                line={
                    "dash": DASHES.get(said, "dash"),
                    "color": COLOURS[drawn.index(key) % len(COLOURS)],
                },
                name=f"{chart_text(names[key], 36)}, {said}: error {own['error']:.3f} (chance: {chance:.3f})",
                customdata=[b["n"] for b in bins],
                hovertemplate="stated probability %{x:.2f}, share right %{y:.2f} of %{customdata}<extra></extra>",
            )
        )
        rows += [
            {
                "run": names[key],
                "of": said,
                "calibration error": own["error"],
                "by chance up to": chance,
                **{k: b[k] for k in ("low", "high", "n", "said", "so")},
            }
            for b in bins
        ]
    layout(
        figure,
        520,
        xaxis={"title": "stated probability (mean of each bin)", "range": [0, 1.02]},
        yaxis={"title": "share that was right", "range": [0, 1.02]},
    )
    figure.update_layout(legend={"orientation": "v", "x": 1.02, "y": 1, "yanchor": "top"})
    caption = (
        "Solid: answers, and whether they are right. Dotted: [EOI], and whether no answer was left. Dots and dashes: the verifier's probability "
        "that the evidence bears an answer out, and whether the answer is right. Below the dashed line, the system is overconfident. "
        "Error: the expected calibration error, which is the mean distance from that line. In brackets: what a perfectly calibrated system stays "
        "below in 95 of 100 such runs, so that a smaller error is no sign of a fault."
    )
    caption += f" Not drawn: {without}." if without else ""
    return Chart(KEY, TITLE, figure, pd.DataFrame(rows), caption)


CHARTS = (
    Record(
        menu="Reliability",
        key=KEY,
        title=TITLE,
        applies=lambda _request, _run: True,  # a run without probabilities is named, with the reason
        empty="",
        draw=reliability,
    ),
)
