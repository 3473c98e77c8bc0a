"""What the evaluate page's parts share: runs and their names, and how a chart is shown and its data kept."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from pages.evaluate.charts.base import Chart
from pages.ui.markup import escape, named
from storage.exchange.exports.tables import safe_cell
from storage.records.results import StoredEvaluation

VIEWS = ("Leaderboard", "Charts", "Two runs", "One run", "Start and store")


def names(runs: Sequence[StoredEvaluation]) -> dict[str, str]:
    """Run id -> a name for people, another one for each: its label or system, the question file where they differ, a number of the id."""
    short = {run.id: run.label or run.system for run in runs}
    if len({run.questions for run in runs}) > 1:
        short = {run.id: f"{short[run.id]} · {run.questions}" for run in runs}
    taken = list(short.values())
    return {key: name if taken.count(name) == 1 else f"{name} #{key[:4]}" for key, name in short.items()}


def metrics_of(runs: Sequence[StoredEvaluation]) -> list[str]:
    """The metrics that some run has, F1 answer first."""
    found = dict.fromkeys(m for run in runs for m in run.scores)
    return sorted(found, key=lambda m: m != "F1 answer")


def csv(table: pd.DataFrame) -> bytes:
    """Text cells and headings that a spreadsheet would take for a formula begin with an apostrophe; numbers stay numbers."""
    safe = table.map(lambda cell: safe_cell(cell) if isinstance(cell, str) else cell)
    safe.columns = [safe_cell(str(c)) for c in table.columns]
    out = io.StringIO()
    safe.to_csv(out, index=False)
    return out.getvalue().encode("utf-8-sig")


def draw(chart: Chart) -> None:
    """The chart with its data below; the camera in its corner saves it as PNG."""
    st.subheader(chart.title)
    if chart.figure is None:
        st.info(escape(chart.empty), icon=":material/bar_chart_off:")
        return
    if chart.caption:
        st.caption(escape(chart.caption))
    st.plotly_chart(
        chart.figure,
        width="stretch",
        key=f"evaluate.chart.{chart.key}",
        config={
            "displaylogo": False,
            "displayModeBar": True,
            "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
            "toImageButtonOptions": {"format": "png", "filename": f"ambiscope-{chart.key}", "scale": 2},
        },
        alt=f"{chart.title}. {chart.caption} The same data are in the table under Data.",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            named("Data as CSV", f"of {chart.title}"),
            data=csv(chart.table),
            file_name=f"ambiscope-{chart.key}.csv",
            mime="text/csv",
            key=f"evaluate.csv.{chart.key}",
            icon=":material/download:",
            on_click="ignore",
        )
        with st.popover(named("Data", f"of {chart.title}"), icon=":material/table:"):
            st.dataframe(chart.table, hide_index=True, alt=f"Data of the chart: {chart.title}")
