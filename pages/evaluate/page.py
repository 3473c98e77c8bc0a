"""Evaluate: run systems over question files, compare them with intervals, and look into what differs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import AmbiscopeError
from core.evaluation.published import PublishedTable, tables_of
from pages.evaluate import compare, judges, leaderboard, rows, source, start_form
from pages.evaluate.charts import reliability
from pages.evaluate.charts.base import SCOPES, ChartRequest
from pages.evaluate.charts.catalogue import CHARTS, MENU
from pages.evaluate.data import VIEWS, draw, metrics_of, names
from pages.session import shared
from pages.ui.markup import escape
from storage.records.results import StoredEvaluation

DRAWN = 8  # runs in a chart to begin with
NO_TABLE = "none"


def _published(place: DeltaGenerator, kind: str, metric: str = "") -> PublishedTable | None:
    """Which of the papers' tables to draw beside ours."""
    tables = [t for t in tables_of(kind) if not metric or metric in t.metrics]
    if not tables:
        return None
    labels = {t.label: t for t in tables}
    chosen = place.selectbox(
        "Published results to compare",
        [*labels, NO_TABLE],
        key=f"evaluate.published.{kind}",
        help="The papers measured these on other data and other machines.",
    )
    table = labels.get(str(chosen))
    if table is not None and table.note:
        place.caption(f"About these results: {escape(table.note)}.")
    return table


def charts(runs: Sequence[StoredEvaluation], metric: str, scope: str) -> None:
    by_rank = sorted(runs, key=lambda r: -(r.mean(metric, scope) if r.mean(metric, scope) is not None else -1.0))
    called = names(runs)
    kept = st.multiselect(
        "Runs in the charts",
        [r.id for r in by_rank],
        default=[r.id for r in by_rank[:DRAWN]],
        format_func=lambda key: called.get(key, key),
        key="evaluate.drawn",
        max_selections=20,
    )
    chosen = [r for r in by_rank if r.id in set(kept)]
    if not chosen:
        st.info("Choose at least one run.")
        return
    left, right = st.columns(2)
    view = left.selectbox("Chart", MENU, key="evaluate.kind")
    records = [r for r in CHARTS if r.menu == view]
    table = next((_published(right, r.published, metric if r.by_metric else "") for r in records if r.published), None)
    request = ChartRequest(runs, chosen, called, metric, scope, source.store(), table)
    for record in records:
        draw(record.chart(request))
    judged = next((r for r in records if judges.is_judged((metric,) if r.by_metric else r.metrics)), None)
    if judged is not None:
        judges.draw(judged.of(request), called)


def one(runs: Sequence[StoredEvaluation]) -> None:
    called = names(runs)
    chosen = st.selectbox("Run", [r.id for r in runs], format_func=lambda key: called.get(key, key), key="evaluate.one")
    run = next((r for r in runs if r.id == chosen), None)
    if run is None:
        return
    leaderboard.about(run, called[run.id])
    for record in reliability.CHARTS:
        draw(record.chart(ChartRequest([run], [run], called, "F1 answer", "all", source.store())))
    st.subheader("Questions")
    rows.rows(run)


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
    if said := st.session_state.pop("evaluate.said", None):
        st.success(escape(said), icon=":material/check:")
    if error := st.session_state.pop("evaluate.error", None):
        shared.show_error(error)
    start_form.watch()
    source.choose()
    where = leaderboard.filters()
    store = source.store()
    total, runs = store.evaluations.count_evaluations(where), store.evaluations.evaluations(leaderboard.MOST, where=where)
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
        charts(runs, metric, scope)
    elif view == "Two runs":
        compare.compare(runs, metric, scope)
    else:
        one(runs)


shared.enter("evaluate")
try:
    main()
except AmbiscopeError as error:
    shared.show_error(error)
