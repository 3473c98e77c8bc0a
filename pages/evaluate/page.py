"""Evaluate: run systems over question files, compare them with intervals, and look into what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.evaluate import charts, compare, judges, leaderboard, rows, source, start_form
from pages.evaluate.data import SCOPES, VIEWS, metrics_of, names
from pages.session import shared
from pages.ui.markup import escape
from storage.records.results import StoredEvaluation

MAX_DRAWN = 8  # runs in a chart at the start
NO_TABLE = "none"


def draw_charts(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> None:
    by_rank = sorted(runs, key=lambda r: -(r.mean(metric, scope) if r.mean(metric, scope) is not None else -1.0))
    run_names = names(runs)
    place = st.container()
    selected = st.multiselect(
        "Runs in the charts",
        [r.id for r in by_rank],
        default=[r.id for r in by_rank[:MAX_DRAWN]],
        format_func=lambda key: run_names.get(key, key),
        key="evaluate.drawn",
        max_selections=20,
    )
    request = charts.ChartRequest(runs, [r for r in by_rank if r.id in set(selected)], run_names, metric, scope, source.store())
    menu = charts.menu(request) if request.chosen else []
    if not menu:
        place.info("Choose at least one run." if not request.chosen else "These runs have nothing to draw for this metric.")
        return
    with place:
        left, right = st.columns(2)
        view = left.selectbox("Chart", menu, key="evaluate.kind")
        drawn = [c for c in charts.CHARTS if c.menu == view]
        tables = next((charts.published_tables(c, metric) for c in drawn if c.published), None)
        if tables:
            chosen = right.selectbox(
                "Published results to compare",
                [*tables, NO_TABLE],
                key=f"evaluate.published.{view}",
                help="The papers measured these on other data and other machines.",
            )
            request = replace(request, published=tables.get(str(chosen)))
            if request.published is not None and request.published.note:
                right.caption(f"About these results: {escape(request.published.note)}.")
        for chart in drawn:
            charts.draw(chart, request)
        if any(judges.is_judged(c.metrics or (metric,)) for c in drawn):
            judges.draw(request.chosen, run_names)


def one(runs: Sequence[StoredEvaluation]) -> None:
    run_names = names(runs)
    chosen = st.selectbox("Run", [r.id for r in runs], format_func=lambda key: run_names.get(key, key), key="evaluate.one")
    run = next((r for r in runs if r.id == chosen), None)
    if run is None:
        return
    leaderboard.about(run, run_names[run.id])
    (reliability,) = (c for c in charts.CHARTS if c.key == "reliability")
    charts.draw(reliability, charts.ChartRequest([run], [run], run_names, "F1 answer", "all", source.store()))
    st.subheader("Questions")
    rows.draw_rows(run)


def start() -> None:
    """Raises NotAllowedError."""
    shared.store().allow("run evaluations")
    st.subheader("Start an evaluation")
    start_form.form()
    st.subheader("Run folders")
    start_form.folders()
    st.subheader("Upload a file")
    start_form.uploads()


def main() -> None:
    st.header("Evaluate")
    st.markdown(
        "Compare systems on the same questions: mean scores with 95% intervals, cost, errors, and the papers' published results."
    )
    start_form.watch()
    source.choose()
    where = leaderboard.filters()
    store = source.store()
    total, runs = store.evaluations.count_evaluations(where), store.evaluations.evaluations(leaderboard.MAX_RUNS, where=where)
    view = (
        st.segmented_control("View", VIEWS, default=VIEWS[0], required=True, key="evaluate.view", label_visibility="collapsed")
        or VIEWS[0]
    )
    if view == "Start and store":
        start()
        return
    if not runs:
        if store.evaluations.count_evaluations():
            st.info("No stored run matches the filters in the sidebar.")
        else:
            st.info(
                "No run is stored yet. Choose Start and store to start one, or to store a run folder made on the command line.",
                icon=":material/bar_chart_off:",
            )
            if source.hidden():
                st.button("Show the shipped runs", key="evaluate.show", on_click=source.show, icon=":material/visibility:")
        return
    source.about()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metric = str(st.selectbox("Metric", metrics_of(runs) or ["F1 answer"], key="evaluate.metric", width=260))
        scope = str(
            st.selectbox(
                "Questions", list(SCOPES), format_func=lambda scope: SCOPES[scope].capitalize(), key="evaluate.scope", width=300
            )
        )
    if view == "Leaderboard":
        leaderboard.leaderboard(runs, metric, scope)
        if total > len(runs):
            st.caption(f"Showing the newest {len(runs)} of {total:,} runs. Use the filters in the sidebar to find others.")
        st.caption("Runs on different question files or corpora cannot be compared. Filter by question file first.")
    elif view == "Charts":
        draw_charts(runs, metric, scope)
    elif view == "Two runs":
        compare.compare(runs, metric, scope)
    else:
        one(runs)


main()
