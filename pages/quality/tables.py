"""Tables and charts of the quality page: plain rows out of storage.analysis.agreement's records.  An undefined figure is text, not a number."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from core.annotating.labels import LABELS
from core.text import date_text
from pages.ui import charts
from pages.ui.figures import interval, number, value, value_with_interval
from storage.analysis.agreement import Quality

TableRow = dict[str, Any]
ADDED = "missing answers"
HELP = {
    "Correct": "The share of a question's judged answers that most people label correct, averaged over questions. Each question counts the "
    "same, however many answers it has. So it is not the number under 'correct' divided by all judged answers.",
    "Questions judged": "Questions with at least one answer on whose label most people agree.",
    "F1 with people": "Answer F1 against each person's own answers, averaged over people, then over questions.",
    "F1 with final answers": "Answer F1 against the final answer sets, averaged over questions.",
    "Questions finished": "Questions with a final answer set.",
    "Alpha with people": "Krippendorff's alpha, with the system counted as one more annotator.",
    "correct": "Answers that most people label correct.",
    "wrong": "Answers that most people label wrong.",
    "unsupported": "Answers that most people label unsupported by the passages.",
    "duplicate": "Answers that most people label a duplicate of another answer.",
    "outdated": "Answers that most people label outdated: a newer document says otherwise.",
    "contradicts": "Answers that, most people say, another document contradicts.",
    ADDED: "Right answers that annotators added because the system did not give them, each counted once per question.",
    "Answers shared": "Answers that this person and somebody else wrote, judged or validated.",
    "Competence": "How probable it is that this person is right about an answer.",
    "Of correct answers": "The share of the correct answers that this person holds correct.",
    "Of other answers": "The share of the other answers that this person does not hold correct.",
    "Gold score": "Mean agreement with the right answers of the gold items.",
}
DAY_MEASURES = ("Items", "Minutes", "Agreement (F1)")
MAX_PAIRS = 190  # of people, in a table: 20 people


def overall(q: Quality) -> list[TableRow]:
    return [
        {"Measure": f.name, "Value": value(f), "95% interval": interval(f), "n": f.n, "Why undefined": f.why}
        for f in (*q.figures, q.labels, q.question_labels, q.preferences)
    ]


def pairs(q: Quality) -> list[TableRow]:
    rows: dict[tuple[str, str], TableRow] = {}
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
    return list(rows.values())[:MAX_PAIRS]


def items(q: Quality) -> list[TableRow]:
    return [
        {
            "Question": r.prompt,
            "Answer F1": round(100 * r.f1, 1),
            "MASI distance": round(r.distance, 3),
            "Question similarity": number(r.questions),
            "Types": ", ".join(r.types),
            "People": ", ".join(r.people),
            "Id": r.item,
        }
        for r in q.items
    ]


def periods(q: Quality) -> list[TableRow]:
    return [
        {"From": date_text(date.fromisoformat(p.start)), "Questions": p.n} | {f.name: value_with_interval(f) for f in p.figures}
        for p in q.periods
    ]


def types(q: Quality) -> list[TableRow]:
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


def times(q: Quality) -> list[TableRow]:
    return [
        {
            "Person": r.person,
            "Finished": r.n,
            "Median time (min)": round(r.median_seconds / 60, 1),
            "Total time (h)": round(r.hours, 1),
        }
        for r in q.times
    ]


def days(q: Quality) -> list[TableRow]:
    return [
        {
            "Day (UTC)": r.day,
            "Person": r.person,
            "Items": r.items,
            "Minutes": round(r.minutes, 1),
            "Agreement (F1)": None if r.agreement is None else round(100 * r.agreement, 1),
        }
        for r in q.days
    ]


def guidelines(q: Quality) -> list[TableRow]:
    return [
        {"Guidelines": f"version {r.version}" if r.version else "none", "Questions": r.n}
        | {f.name: value_with_interval(f) for f in r.figures}
        for r in q.guidelines
    ]


def competence(q: Quality) -> list[TableRow]:
    has_gold = any(r.gold_n for r in q.competence)
    return [
        {
            "Person": r.person,
            "Answers shared": r.n,
            "Competence": number(r.accuracy),
            "Of correct answers": number(r.on_correct),
            "Of other answers": number(r.on_others),
            **({"Gold items": r.gold_n, "Gold score": number(r.gold) if r.gold_n else ""} if has_gold else {}),
        }
        for r in q.competence
    ]


def judges(q: Quality) -> list[TableRow]:
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


def systems(q: Quality) -> list[TableRow]:
    return [
        {
            "System": r.system,
            "Correct": value_with_interval(r.correct),
            "Questions judged": r.correct.n,
            "F1 with people": value_with_interval(r.f1),
            "Questions annotated": r.f1.n,
            "F1 with final answers": value_with_interval(r.final),
            "Questions finished": r.final.n,
            "Alpha with people": value_with_interval(r.alpha),
            **{label: r.labels.get(label, 0) for label in LABELS},
            ADDED: q.missing.get(r.system, 0),
        }
        for r in q.systems
    ]


# ---------------------------------------------------------------- charts; None if there is nothing to draw


def types_chart(q: Quality) -> go.Figure | None:
    """Shares with intervals beside AmbigNQ's."""
    rows = [
        {"type": r.type, "of": "this project", "share": 100 * r.share, "low": 100 * r.interval[0], "high": 100 * r.interval[1]}
        for r in q.types
    ]
    rows += [{"type": r.type, "of": "AmbigNQ's instructions", "share": 100 * r.expected} for r in q.types]
    labels = {"share": "share of annotations (%)"}
    return charts.figure(px.bar, pd.DataFrame(rows), x="type", y="share", color="of", labels=labels) if rows else None


def days_chart(q: Quality, measure: str) -> go.Figure | None:
    """One of the DAY_MEASURES by day, for the people with the most minutes.  None if nobody did anything."""
    minutes = Counter[str]()
    for row in q.days:
        minutes[row.person] += round(row.minutes) + row.items
    people = [person for person, _ in minutes.most_common(len(charts.PALETTE))]
    rows = [
        {"day": row["Day (UTC)"], "person": row["Person"], measure: row[measure]}
        for row in days(q)
        if row["Person"] in people and row[measure] is not None
    ]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    if measure == DAY_MEASURES[-1]:  # means are not stacked
        return charts.figure(px.line, frame, x="day", y=measure, color="person", markers=True)
    return charts.figure(px.bar, frame, x="day", y=measure, color="person", barmode="stack")


def periods_chart(q: Quality) -> go.Figure | None:
    """Alpha and answer F1 over time, with intervals.  None for fewer than two periods."""
    rows = [
        {"from": p.start, "measure": f.name, "agreement": f.value, "low": ends[0], "high": ends[1]}
        for p in q.periods
        for f in p.figures[:2]
        if (ends := f.interval or (f.value, f.value))
    ]
    if len(q.periods) < 2:
        return None
    return charts.figure(px.line, pd.DataFrame(rows), x="from", y="agreement", color="measure", markers=True)


def systems_chart(q: Quality) -> go.Figure | None:
    """The labels of each system's answers."""
    rows = [
        {"system": r.system, "label": label, "answers": r.labels.get(label, 0)}
        for r in q.systems
        if r.labels
        for label in LABELS
    ]
    if not rows:
        return None
    labels = {"answers": "answers, by the label that most people give"}
    frame = pd.DataFrame(rows)
    return charts.figure(px.bar, frame, x="answers", y="system", color="label", labels=labels, orientation="h", barmode="stack")
