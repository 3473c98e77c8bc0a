"""Two runs side by side: each metric's difference with interval and p-value, the questions that differ most, and both traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.metrics.significance.compare import MetricDifference
from pages.evaluate import judges, source
from pages.evaluate.charts.base import ALL, MULTI, SCOPES, Chart, format_score, is_share, layout
from pages.evaluate.data import draw, metrics_of, names
from pages.evaluate.rows import question
from pages.session import shared
from pages.ui.markup import escape, short
from storage.records.results import StoredEvaluation

PAGE = 25
MOST = 500  # questions in the chart


def compare(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> None:
    if len(runs) < 2:
        st.info("A comparison needs two stored runs. Choose Start and store to start another one, or to store a run folder.")
        return
    called = names(runs)
    ids = [r.id for r in runs]
    left, right = st.columns(2)
    with left:
        first, second = to_begin_with(runs, metric, scope)
        a = st.selectbox("Run A", ids, index=ids.index(first), format_func=called.__getitem__, key="evaluate.a")
    with right:
        others = [i for i in ids if i != a]
        start = others.index(second) if second in others else 0
        b = st.selectbox("Run B", others, index=start, format_func=called.__getitem__, key="evaluate.b")
    by_id = {r.id: r for r in runs}
    common = [m for m in metrics_of([by_id[a]]) if m in by_id[b].scores]
    if not common:
        st.info("These runs have no metric in common.")
        return
    found = shared.compared(a, b, tuple(common), scope, source.store())
    if not any(d.comparison.n for d in found.values()):
        st.info("These runs have no question in common. Choose two runs on the same question file.")
        return
    st.caption(
        f"A: {escape(called[a])}. B: {escape(called[b])}. {SCOPES[scope].capitalize()}; {BOOTSTRAP_SAMPLES:,} bootstrap samples, seed 0."
    )
    st.caption(
        f"p (Holm): corrected for {sum(d.holm is not None for d in found.values())} metrics compared at once (Holm 1979)."
    )
    draw(_metrics(found))
    if judges.is_judged(common):
        judges.draw([by_id[a], by_id[b]], called)
    chosen = metric if metric in common else common[0]
    _questions(a, b, chosen, called)


def to_begin_with(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> tuple[str, str]:
    """The two that matter: the newest run of the default system, and the best one of another system over the same questions.  Without them the
    first two.  `runs`: at least two, the newest first."""
    default = shared.settings().system
    ours = next((r for r in runs if r.system == default), None)
    if ours is None:
        return runs[0].id, runs[1].id
    rivals = [r for r in runs if r.system != default and r.questions == ours.questions and r.mean(metric, scope) is not None]
    best = max(rivals, key=lambda r: r.mean(metric, scope) or 0.0, default=next(r for r in runs if r is not ours))
    return ours.id, best.id


def _metrics(found: Mapping[str, MetricDifference]) -> Chart:
    rows, kept = [], []
    for name, d in found.items():
        c = d.comparison
        if not c.n:
            continue
        rows.append(
            {
                "metric": name,
                "A": format_score(name, d.a),
                "B": format_score(name, d.b),
                "A - B": _signed(name, c.difference),
                "low": _signed(name, c.interval[0]) if c.interval else "",
                "high": _signed(name, c.interval[1]) if c.interval else "",
                "p (permutation)": f"{c.p_value:.4f}" if c.p_value is not None else "",
                "p (Holm)": f"{d.holm:.4f}" if d.holm is not None else "",
                "n": c.n,
            }
        )
        if is_share(name) and c.difference is not None:
            kept.append((name, c))
    table = pd.DataFrame(rows)
    st.dataframe(table, hide_index=True, width="stretch", alt="Each metric in both runs, with difference, interval and p-value")
    figure = go.Figure(
        go.Scatter(
            y=[n for n, _ in kept],
            x=[c.difference for _, c in kept],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [(c.interval[1] - c.difference) if c.interval else 0 for _, c in kept],
                "arrayminus": [(c.difference - c.interval[0]) if c.interval else 0 for _, c in kept],
            },
            mode="markers",
            marker={"size": 10, "color": ALL},
            hovertemplate="%{y}: %{x:+.3f}<extra></extra>",
        )
    )
    figure.add_vline(x=0, line_color="#888", line_width=1)
    layout(
        figure,
        130 + 28 * len(kept),
        yaxis={"autorange": "reversed", "automargin": True},
        xaxis={"title": "A - B, with the 95% interval of the paired bootstrap"},
    )
    return Chart("differences", "Difference between the means", figure, table)


def _signed(metric: str, value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f}" if is_share(metric) else f"{value:+.2f}"


def _questions(a: str, b: str, metric: str, called: Mapping[str, str]) -> None:
    store = source.store()
    values_a, values_b = store.evaluations.paired_values(a, b, metric)
    differences = sorted((x - y for x, y in zip(values_a, values_b, strict=True)), reverse=True)
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    shown_ = _thinned(differences)
    figure = go.Figure(
        go.Bar(
            x=[i for i, _ in shown_],
            y=[d for _, d in shown_],
            marker_color=[ALL if d > 0 else MULTI for _, d in shown_],
            hovertemplate="%{y:+.3f}<extra></extra>",
        )
    )
    layout(figure, 320, bargap=0, xaxis={"title": "questions, sorted by difference"}, yaxis={"title": f"{metric}: A - B"})
    caption = f"{metric}: A is better on {better} questions and B on {worse}; {len(differences) - better - worse} of {len(differences)} are equal."
    draw(
        Chart(
            "question-differences",
            "Question by question",
            figure,
            pd.DataFrame({"rank": range(1, len(differences) + 1), "A - B": differences}),
            caption,
        )
    )
    pages = max(1, -(-len(differences) // PAGE))
    page = st.pagination(pages, key=f"evaluate.pairs.{a}.{b}.{metric}") if pages > 1 else 1
    rows = store.evaluations.paired_rows(a, b, metric, PAGE, (page - 1) * PAGE)
    st.dataframe(
        pd.DataFrame(
            {
                "A - B": [r.difference for r in rows],
                "A": [r.a for r in rows],
                "B": [r.b for r in rows],
                "question": [r.question for r in rows],
                "ambiguous": [r.ambiguous for r in rows],
                "id": [r.question_id for r in rows],
            }
        ),
        hide_index=True,
        width="stretch",
        column_config={n: st.column_config.NumberColumn(format="%.3f") for n in ("A - B", "A", "B")},
        alt=f"Questions by the size of their difference in {metric}",
    )
    texts = {r.question_id: f"{r.difference:+.2f}  {short(r.question, 90)}" for r in rows}
    chosen = st.selectbox(
        "Show a question", list(texts), index=None, format_func=lambda key: texts.get(key, str(key)), key="evaluate.pair"
    )
    if chosen in texts:
        for place, run, letter in zip(st.columns(2), (a, b), "AB", strict=True):
            with place:
                st.subheader(f"{letter}: {escape(called[run])}")
            question(place.container(border=True), run, str(chosen), f"pair.{letter}.{run}", narrow=True)


def _thinned(values: Sequence[float]) -> list[tuple[int, float]]:
    """At most MOST bars, evenly drawn from the sorted values: their shape stays."""
    step = max(1, -(-len(values) // MOST))
    return [(i + 1, values[i]) for i in range(0, len(values), step)]
