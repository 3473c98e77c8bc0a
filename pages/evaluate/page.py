"""Evaluate: run systems over question files, compare them with intervals, and inspect differences question by question."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.metrics import goodness
from pages.evaluate import charts, compare, judges, leaderboard, rows, start_form
from pages.evaluate.data import COLUMN_WIDTHS, VIEWS, choose_metric, names
from pages.session import run_source, shared
from storage.records.results import StoredEvaluation

MAX_DRAWN = 8  # runs in a chart at the start


def all_runs(runs: Sequence[StoredEvaluation], total: int) -> None:
    """A chart with its selectors beside it, and the runs below."""
    run_names = names(runs)
    chart_column, side_column = st.columns(COLUMN_WIDTHS)
    with side_column:
        chart_choice = st.container()
        metric, scope = choose_metric(runs)
        measured = {r.id: mean for r in runs if (mean := r.mean(metric, scope)) is not None}
        by_rank = sorted(runs, key=lambda r: (r.id not in measured, -goodness(metric, measured.get(r.id, 0.0))))
        ids = st.multiselect(
            "Runs in the chart",
            [r.id for r in by_rank],
            default=[r.id for r in by_rank[:MAX_DRAWN]],
            format_func=lambda key: run_names.get(key, key),
            key="evaluate.drawn",
            max_selections=20,
        )
    selected = [r for r in by_rank if r.id in set(ids)]
    request = charts.ChartRequest(runs, selected, run_names, metric, scope, run_source.store())
    frames = charts.drawable(request) if selected else {}
    metrics = {metric}
    with chart_column:
        if frames:
            menus = list(dict.fromkeys(chart.menu for chart in frames))
            missing = [name for name in dict.fromkeys(chart.menu for chart in charts.CHARTS) if name not in menus]
            menu = chart_choice.selectbox(
                "Chart",
                menus,
                key="evaluate.kind",
                help=f"No run here has data for: {', '.join(missing)}." if missing else None,
            )
            for chart, frame in frames.items():
                if chart.menu == menu:
                    metrics.update(chart.metrics)
                    charts.draw(chart, frame, metric)
        else:
            st.info("These runs have nothing to draw for this metric." if selected else "Choose at least one run.")
    leaderboard.leaderboard(runs, metric, scope)
    if judges.is_judged(metrics):
        judges.draw(selected, run_names)
    if total > len(runs):
        st.caption(f"Showing the newest {len(runs)} of {total:,} runs. Use the filters in the sidebar to find others.")
    st.caption("Runs on different question files or corpora cannot be compared. Filter by question file first.")


def one_run(runs: Sequence[StoredEvaluation]) -> None:
    run_names, by_id = names(runs), {r.id: r for r in runs}
    run_id = st.selectbox("Run", list(by_id), format_func=lambda key: run_names.get(key, key), key="evaluate.one")
    if (run := by_id.get(run_id)) is None:
        return
    request = charts.ChartRequest([run], [run], run_names, "F1 answer", "all", run_source.store())
    if len(frame := charts.RELIABILITY.frame(request)):
        charts.draw(charts.RELIABILITY, frame, request.metric)
    leaderboard.details(run, run_names[run.id])
    st.subheader("Questions")
    rows.draw_rows(run)


def main() -> None:
    st.header("Evaluate")
    start_form.watch()
    run_source.choose()
    filters = leaderboard.filters()
    evaluations = run_source.store().evaluations
    total, runs = evaluations.count_evaluations(filters), evaluations.evaluations(leaderboard.MAX_RUNS, filters=filters)
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="evaluate.view", label_visibility="collapsed"
    )
    if view == "Start and store":
        shared.store().allow("run evaluations")
        st.subheader("Start an evaluation")
        start_form.form()
        st.subheader("Run folders")
        start_form.folders()
        st.subheader("Upload a file")
        start_form.upload()
    elif not runs:
        if evaluations.count_evaluations():
            st.info("No stored run matches the filters in the sidebar.")
        elif not run_source.is_loading():
            st.info(
                "No run is stored yet. Choose Start and store to start one, or to store a run folder made on the command line.",
                icon=":material/bar_chart_off:",
            )
            if run_source.is_hidden():
                st.button(
                    "Show the example runs",
                    key="evaluate.show",
                    on_click=run_source.set_shown,
                    args=(True,),
                    icon=":material/visibility:",
                )
    else:
        if view == "Two runs":
            compare.compare(runs)
        elif view == "One run":
            one_run(runs)
        else:
            all_runs(runs, total)
        run_source.describe()


main()
