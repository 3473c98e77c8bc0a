"""What the evaluate page's parts share: runs and their names, a chart with its data, and how both are drawn and kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from core.metrics import COUNT_METRICS
from pages.app.markup import chart_text, plain
from storage.exchange.exports.tables import safe_cell
from storage.records.results import StoredEvaluation

ALL, MULTI, PUBLISHED = "#2f7ed8", "#d98032", "#7a7a7a"  # told apart without colour vision, on white and on black
FONT = "Arial, Helvetica, sans-serif"  # a saved image has no web fonts: with those of the page its labels would be cut
COLOURS = ("#2f7ed8", "#d98032", "#3c9a5f", "#a35fb0", "#b8a100", "#c4504b", "#4aa3a3", "#6b6b6b")
VIEWS = ("Leaderboard", "Charts", "Two runs", "One run", "Start and store")
CHARTS = (
    "Quality",
    "Seconds and quality",
    "Training-set size",
    "Precision and recall",
    "Ablations",
    "Zero-shot and decoding",
    "Retrieval",
    "Grounding",
    "Reliability",
    "Errors",
    "Groups",
)
SCOPES = {"all": "all questions", "multi": "ambiguous questions (multi)"}


@dataclass(frozen=True)
class Chart:
    """`figure` None: there is nothing to draw, and `empty` says what would have to be there."""

    key: str
    title: str
    figure: go.Figure | None
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    caption: str = ""
    empty: str = ""


def names(runs: Sequence[StoredEvaluation]) -> dict[str, str]:
    """Run id -> a name for people, another one for each: its label or system, the question file where they differ, a number of the id."""
    short = {run.id: run.label or run.system for run in runs}
    if len({run.questions for run in runs}) > 1:
        short = {run.id: f"{short[run.id]} · {run.questions}" for run in runs}
    taken = list(short.values())
    return {key: name if taken.count(name) == 1 else f"{name} #{key[:4]}" for key, name in short.items()}


def is_share(metric: str) -> bool:
    return metric not in COUNT_METRICS


def shown(metric: str, value: float | None) -> str:
    """A share in hundredths, a count as it is."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if is_share(metric) else f"{value:.2f}"


def metrics_of(runs: Sequence[StoredEvaluation]) -> list[str]:
    """The metrics that some run has, F1 answer first."""
    found = dict.fromkeys(m for run in runs for m in run.scores)
    return sorted(found, key=lambda m: m != "F1 answer")


def layout(figure: go.Figure, height: int, **more: object) -> go.Figure:
    figure.update_layout(
        height=height,
        font={"family": FONT},
        margin={"l": 8, "r": 8, "t": 80, "b": 8},  # above: the buttons, and a legend of two lines
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        **more,
    )
    return figure


def bars(names_: Sequence[str], values: Sequence[float | None], **more: object) -> go.Bar:
    return go.Bar(y=[chart_text(n, 44) for n in names_], x=list(values), orientation="h", **more)  # type: ignore[arg-type]


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
        st.info(plain(chart.empty), icon=":material/bar_chart_off:")
        return
    if chart.caption:
        st.caption(plain(chart.caption))
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
        alt=f"{chart.title}. {chart.caption}",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Data as CSV",
            data=csv(chart.table),
            file_name=f"ambiscope-{chart.key}.csv",
            mime="text/csv",
            key=f"evaluate.csv.{chart.key}",
            icon=":material/download:",
            on_click="ignore",
        )
        with st.popover("Data", icon=":material/table:"):
            st.dataframe(chart.table, hide_index=True, alt=f"The data of the chart: {chart.title}")
