"""Two runs side by side: each metric's difference with interval and p-value, the questions that differ most, and both
traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.express as px
import streamlit as st

from core.metrics import better_of, goodness
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.metrics.significance.compare import MetricDifference, compare_values, corrected
from pages.evaluate import judges
from pages.evaluate.data import COLUMN_WIDTHS, SCOPES, choose_metric, interval, metrics_of, names
from pages.evaluate.rows import question
from pages.session import run_source, shared
from pages.ui import charts as drawing
from pages.ui.formatting import axis, format_score, is_share, scaled
from pages.ui.markup import distinct, escape
from pages.ui.tables import table
from storage.records.results import StoredEvaluation
from storage.store import SessionStore

QUESTIONS_PER_PAGE = 25
MAX_BARS = 500  # questions in the chart
MAX_P_VALUE = 0.05  # a corrected p-value below
NOT_SIGNIFICANT = "not significant"


def compare(runs: Sequence[StoredEvaluation]) -> None:
    if len(runs) < 2:
        st.info("A comparison needs two stored runs. Choose Start and store to start another one, or to store a run folder.")
        return
    run_names, by_id = names(runs), {r.id: r for r in runs}
    chart_column, side_column = st.columns(COLUMN_WIDTHS)
    with side_column:
        pair_choice = st.container()
        metric, scope = choose_metric(runs)
        first, second = default_pair(runs, metric, scope)
        run_a = pair_choice.selectbox("Run A", list(by_id), list(by_id).index(first), run_names.__getitem__, key="evaluate.a")
        others = [key for key in by_id if key != run_a]
        start = others.index(second) if second in others else 0
        run_b = pair_choice.selectbox("Run B", others, start, run_names.__getitem__, key="evaluate.b")
    common = [m for m in metrics_of([by_id[run_a]]) if m in by_id[run_b].scores]
    if not common:
        st.info("These runs have no metric in common.")
        return
    shared.store().allow("see evaluations")
    differences = {
        name: d for name, d in _compared(run_a, run_b, tuple(common), scope, run_source.store()).items() if d.comparison.n
    }
    if not differences:
        st.info("These runs have no question with the same references in common. Choose two runs on the same question file.")
        return
    with chart_column:
        rows = _metrics(dict(sorted(differences.items(), key=lambda item: 1.0 if item[1].holm is None else item[1].holm)))
    table(rows, "Each metric in both runs, with difference, interval and p-value", csv_name="comparison")
    st.caption(
        f"A: {escape(run_names[run_a])}. B: {escape(run_names[run_b])}. {SCOPES[scope].capitalize()}. 95% intervals from a paired bootstrap of "
        f"{BOOTSTRAP_SAMPLES:,} samples. p (Holm) is corrected for {sum(d.holm is not None for d in differences.values())} metrics compared at "
        f"once; from {MAX_P_VALUE} on a difference is not significant."
    )
    if judges.is_judged(common):
        judges.draw([by_id[run_a], by_id[run_b]], run_names)
    _questions(run_a, run_b, metric if metric in common else common[0], run_names)


@st.cache_data(show_spinner="Comparing", max_entries=64)
def _compared(a: str, b: str, metrics: tuple[str, ...], scope: str, _runs: SessionStore) -> dict[str, MetricDifference]:
    """A stored run never changes, and no two stores have one of the same id."""
    return corrected({m: compare_values(*_runs.evaluations.paired_values(a, b, m, multi=scope == "multi")) for m in metrics})


def default_pair(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> tuple[str, str]:
    """The ids of the newest run of the default system, and of the best one of another system over the same questions; else of the first
    two runs.  `runs`: at least two, the newest first."""
    default = shared.settings().system
    newest = next((r for r in runs if r.system == default), None)
    if newest is None:
        return runs[0].id, runs[1].id
    rivals = [r for r in runs if r.system != default and r.questions == newest.questions and r.mean(metric, scope) is not None]
    best = max(
        rivals, key=lambda r: goodness(metric, r.mean(metric, scope) or 0.0), default=next(r for r in runs if r is not newest)
    )
    return newest.id, best.id


def verdict(metric: str, d: MetricDifference) -> str:
    """The conclusion from a difference (n > 0), by its corrected p-value: which run is better, or higher where neither direction is better."""
    if (d.holm or 0.0) >= MAX_P_VALUE:
        return NOT_SIGNIFICANT
    first = goodness(metric, d.comparison.difference or 0.0) > 0
    return f"{'A' if first else 'B'} is {'better' if better_of(metric) else 'higher'}"


def _metrics(differences: Mapping[str, MetricDifference]) -> list[dict[str, Any]]:
    """Draws the chart and returns the rows of the table below it."""
    rows, bars = list[dict[str, Any]](), []
    for name, difference in differences.items():
        comparison = difference.comparison
        low, high = comparison.interval or (None, None)
        rows.append(
            {
                "metric": name,
                "better": better_of(name) or "–",
                "A": format_score(name, difference.a),
                "B": format_score(name, difference.b),
                "A - B": format_score(name, comparison.difference, "+"),
                "95% interval": interval(name, low, high, "+"),
                "verdict": verdict(name, difference),
                "p (Holm)": f"{difference.holm:.4f}" if difference.holm is not None else "",
                "p (permutation)": f"{comparison.p_value:.4f}" if comparison.p_value is not None else "",
                "n": comparison.n,
            }
        )
        if is_share(name) and comparison.difference is not None:
            ends = {"A - B": comparison.difference, "low": low, "high": high}
            significance = NOT_SIGNIFICANT if verdict(name, difference) == NOT_SIGNIFICANT else "significant"
            label = f"{name} (lower is better)" if better_of(name) == "lower" else name
            bars.append({"metric": label, "difference": significance, **{end: scaled(name, x) for end, x in ends.items()}})
    st.subheader("Difference between the means")
    if bars:
        chart_figure = drawing.figure(
            px.bar,
            pd.DataFrame(bars),
            x="A - B",
            y="metric",
            color="difference",
            orientation="h",
            barmode="relative",
            labels={"A - B": "A - B in points, with the 95% interval"},
            color_discrete_map={NOT_SIGNIFICANT: drawing.NEUTRAL, "significant": drawing.PALETTE[0]},
        )
        drawing.show(
            chart_figure, "evaluate.chart.differences", "Difference of each metric. The table below has the same data."
        )
        st.caption("To the right of 0, A is better; where a lower value is, to the left.")
    return rows


def _questions(run_a: str, run_b: str, metric: str, run_names: Mapping[str, str]) -> None:
    store = run_source.store()
    values_a, values_b = store.evaluations.paired_values(run_a, run_b, metric)
    differences = sorted((scaled(metric, x - y) or 0.0 for x, y in zip(values_a, values_b, strict=True)), reverse=True)
    better, worse = sum(goodness(metric, d) > 0 for d in differences), sum(goodness(metric, d) < 0 for d in differences)
    equal, word = len(differences) - better - worse, "better" if better_of(metric) else "higher"
    st.subheader("Question by question")
    st.caption(
        escape(f"{metric}: A is {word} on {better} questions and B on {worse}; {equal} of {len(differences)} are equal.")
    )
    frame = pd.DataFrame({"rank": range(1, len(differences) + 1), "A - B": differences})
    frame[word] = ["A" if goodness(metric, d) > 0 else "B" for d in differences]
    thinned = frame.iloc[:: max(1, -(-len(frame) // MAX_BARS))]  # evenly, so that the shape stays
    labels = {"rank": "questions, sorted by difference", "A - B": f"A - B, {axis(metric)}"}
    chart_figure = drawing.figure(
        px.bar,
        thinned,
        x="rank",
        y="A - B",
        color=word,
        labels=labels,
        barmode="relative",
        layout={"bargap": 0, "height": 320},
    )
    drawing.show(
        chart_figure, "evaluate.chart.question-differences", "Difference of each question. The table below has the largest."
    )
    pages = max(1, -(-len(differences) // QUESTIONS_PER_PAGE))
    page = st.pagination(pages, key=f"evaluate.pairs.{run_a}.{run_b}.{metric}") if pages > 1 else 1
    rows = store.evaluations.paired_rows(run_a, run_b, metric, QUESTIONS_PER_PAGE, (page - 1) * QUESTIONS_PER_PAGE)
    table(
        [
            {
                "A - B": format_score(metric, r.difference, "+"),
                "A": format_score(metric, r.a),
                "B": format_score(metric, r.b),
                "question": r.question,
                "ambiguous": r.ambiguous,
                "id": r.id,
            }
            for r in rows
        ],
        f"Questions by the size of their difference in {metric}",
        csv_name="differences",
    )
    texts = distinct({r.id: r.question for r in rows}, 90)
    labels = {r.id: f"{format_score(metric, r.difference, '+')}  {texts[r.id]}" for r in rows}
    question_id = st.selectbox(
        "Show a question", list(labels), index=None, format_func=lambda key: labels.get(key, str(key)), key="evaluate.pair"
    )
    if question_id in labels:
        for column, run, letter in zip(st.columns(2), (run_a, run_b), "AB", strict=True):
            with column:
                st.subheader(f"{letter}: {escape(run_names[run])}")
                question(run, str(question_id))
