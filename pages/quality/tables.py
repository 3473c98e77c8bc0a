"""Tables and charts of the quality page: plain rows out of storage.analysis.agreement's records.  What is undefined says so and is no number."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from core.annotating.labels import LABELS
from core.metrics.agreement.chance import Figure
from pages.ui.markup import chart_text
from storage.analysis.agreement import Quality
from storage.exchange.exports.tables import safe_cell

Row = dict[str, Any]
UNDEFINED = "undefined"
ADDED = "missing answers"
HELP = {
    "Correct": "The share of a question's judged answers that most people label correct, averaged over questions. Each question counts the "
    "same, however many answers it has. So it is not the number under 'correct' divided by all judged answers.",
    "Questions judged": "Questions with at least one answer on whose label most people agree.",
    "F1 with people": "Answer F1 against each person's own answers, averaged over people, then over questions.",
    "Alpha with people": "Krippendorff's alpha, with the system counted as one more annotator.",
    "correct": "Answers that most people label correct.",
    "wrong": "Answers that most people label wrong.",
    "unsupported": "Answers that most people label unsupported by the passages.",
    "duplicate": "Answers that most people label a duplicate of another answer.",
    ADDED: "Right answers that annotators added because the system did not give them, each counted once per question.",
}
CHARACTER, AROUND = 8, 40  # pixels: of a letter, and of a cell's margins with the arrow of a sorted column
NARROWEST, WIDEST = 80, 900
MOST_PAIRS = 190  # of people, in a table: 20 people


def value(figure: Figure) -> str:
    return f"{figure.value:.3f}" if figure.value is not None else UNDEFINED


def interval(figure: Figure) -> str:
    if figure.interval is None:
        return "" if figure.value is None else "too few questions"
    return f"{figure.interval[0]:.3f} to {figure.interval[1]:.3f}"


def value_with_interval(figure: Figure) -> str:
    """Value and interval in one cell."""
    return value(figure) if figure.interval is None else f"{value(figure)} ({interval(figure)})"


def number(found: float | None) -> str:
    return UNDEFINED if found is None else f"{found:.3f}"


def figure_rows(found: Sequence[Figure]) -> list[Row]:
    return [
        {"Measure": f.name, "Value": value(f), "95% interval": interval(f), "n": f.n, "Why undefined": f.why} for f in found
    ]


def overall(q: Quality) -> list[Row]:
    return figure_rows([*q.figures, q.labels, q.question_labels, q.preferences])


def pairs(q: Quality) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    for row in q.pairs:
        rows[row.first, row.second] = {"Person": row.first, "Other person": row.second, "Questions": row.n} | {
            f.name: value_with_interval(f) for f in row.figures
        }
    for row in q.label_pairs:
        mine = rows.setdefault((row.first, row.second), {"Person": row.first, "Other person": row.second})
        mine |= {
            "Answers judged": row.n,
            "Kappa of labels": value_with_interval(row.figures[0]),
            "Equal labels": value_with_interval(row.figures[1]),
        }
    return list(rows.values())[:MOST_PAIRS]


def items(q: Quality) -> list[Row]:
    return [
        {
            "Question": r.prompt,
            "Answer F1": round(r.f1, 3),
            "MASI distance": round(r.distance, 3),
            "Question similarity": number(r.questions),
            "Types": ", ".join(r.types),
            "People": ", ".join(r.people),
            "Id": r.item,
        }
        for r in q.items
    ]


def periods(q: Quality) -> list[Row]:
    return [{"From": p.start, "Questions": p.n} | {f.name: value_with_interval(f) for f in p.figures} for p in q.periods]


def types(q: Quality) -> list[Row]:
    return [
        {
            "Type": r.type,
            "Annotations": r.count,
            "Share": f"{r.share:.1%}",
            "95% interval": f"{r.interval[0]:.1%} to {r.interval[1]:.1%}",
            "AmbigNQ": f"{r.expected:.0%}",
            "Differs": "yes" if r.drifted else "no",
        }
        for r in q.types
    ]


def times(q: Quality) -> list[Row]:
    return [
        {
            "Person": r.person,
            "Finished": r.n,
            "Median time (min)": round(r.median_seconds / 60, 1),
            "Total time (h)": round(r.hours, 1),
        }
        for r in q.times
    ]


def judges(q: Quality) -> list[Row]:
    return [
        {
            "Judge": r.judge,
            "n": r.n,
            "Accuracy": value_with_interval(r.accuracy),
            "Kappa": value_with_interval(r.kappa),
            "Precision": number(r.precision),
            "Recall": number(r.recall),
            "Both yes": r.table[0],
            "Judge only": r.table[1],
            "People only": r.table[2],
            "Both no": r.table[3],
            "Why undefined": r.accuracy.why or r.kappa.why,
        }
        for r in q.judges
    ]


def systems(q: Quality) -> list[Row]:
    return [
        {
            "System": r.system,
            "Correct": value_with_interval(r.correct),
            "Questions judged": r.correct.n,
            "F1 with people": value_with_interval(r.f1),
            "Questions annotated": r.f1.n,
            "Alpha with people": value_with_interval(r.alpha),
            **{label: r.labels.get(label, 0) for label in LABELS},
            ADDED: q.missing.get(r.system, 0),
        }
        for r in q.systems
    ]


def widths(rows: Sequence[Row]) -> dict[str, int]:
    """Column -> pixels in which its name and its longest cell are not cut off."""
    names = dict.fromkeys(name for row in rows for name in row)
    longest = {name: max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names}
    return {name: min(WIDEST, max(NARROWEST, AROUND + CHARACTER * n)) for name, n in longest.items()}


def as_csv(rows: Sequence[Row]) -> bytes:
    """UTF-8 with a byte order mark; no cell is a formula."""
    out = io.StringIO(newline="")
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(names)
    writer.writerows([[safe_cell(str(row.get(name, ""))) for name in names] for row in rows])
    return ("\ufeff" + out.getvalue()).encode()


def types_chart(q: Quality) -> go.Figure:
    """Shares with intervals beside AmbigNQ's."""
    names = [r.type for r in q.types]
    share = [100 * r.share for r in q.types]
    figure = go.Figure(
        [
            go.Bar(
                x=names,
                y=share,
                name="this project",
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [100 * r.interval[1] - s for r, s in zip(q.types, share)],
                    "arrayminus": [s - 100 * r.interval[0] for r, s in zip(q.types, share)],
                },
            ),
            go.Bar(x=names, y=[100 * r.expected for r in q.types], name="AmbigNQ's instructions"),
        ]
    )
    return _framed(figure, "share of annotations (%)")


def periods_chart(q: Quality) -> go.Figure | None:
    """Alpha and answer F1 over time, with intervals; a period in which one is undefined has a gap.  None for fewer than two periods."""
    if len(q.periods) < 2:
        return None
    figure = go.Figure()
    for k in (0, 1):
        found = [p.figures[k] for p in q.periods]
        figure.add_scatter(
            x=[p.start for p in q.periods],
            y=[f.value for f in found],
            name=found[0].name,
            mode="lines+markers",
            connectgaps=False,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [f.interval[1] - f.value if f.interval and f.value is not None else 0 for f in found],
                "arrayminus": [f.value - f.interval[0] if f.interval and f.value is not None else 0 for f in found],
            },
        )
    return _framed(figure, "agreement")


def systems_chart(q: Quality) -> go.Figure | None:
    """Labels of each system's answers.  None where nothing was judged."""
    judged = [r for r in q.systems if r.labels]
    if not judged:
        return None
    names = [chart_text(r.system) for r in judged]
    bars = [go.Bar(y=names, x=[r.labels.get(v, 0) for r in judged], name=v, orientation="h") for v in LABELS]
    figure = _framed(go.Figure(bars), "")
    figure.update_layout(
        barmode="stack", xaxis_title="answers, by the label that most people give", height=150 + 40 * len(names)
    )
    figure.update_xaxes(tickformat="d", dtick=1 if max(sum(r.labels.values()) for r in judged) < 10 else None)
    return figure


def _framed(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(
        height=320,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        yaxis_title=title,
        # above the plot, however low that is
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
    )
    return figure
