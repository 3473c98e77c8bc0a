"""What a chart is: the record that a family registers, what it is asked about, and the figure with its data.  No Streamlit call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from core.evaluation.published import PublishedTable
from core.metrics import COUNT_METRICS
from pages.ui.markup import chart_text
from storage.records.results import GroupMean, StoredEvaluation
from storage.store import SessionStore, Store

ALL, MULTI, PUBLISHED = "#2f7ed8", "#d98032", "#7a7a7a"  # told apart without colour vision, on white and on black
FONT = "Arial, Helvetica, sans-serif"  # a saved image has no web fonts: with those of the page its labels would be cut
COLOURS = ("#2f7ed8", "#d98032", "#3c9a5f", "#a35fb0", "#b8a100", "#c4504b", "#4aa3a3", "#6b6b6b")
SCOPES = {"all": "all questions", "multi": "ambiguous questions (multi)"}
GROUPS = ("ambiguity", "source")  # what questions are grouped by

Runs = Sequence[StoredEvaluation]


@dataclass(frozen=True)
class Chart:
    """`figure` None: there is nothing to draw, and `empty` says what would have to be there."""

    key: str
    title: str
    figure: go.Figure | None
    table: pd.DataFrame = field(default_factory=pd.DataFrame)
    caption: str = ""
    empty: str = ""


@dataclass(frozen=True)
class ChartRequest:
    """What a person wants to see.  What the store knows of the chosen runs is read once, by the first chart that needs it."""

    runs: Runs  # all that the filters leave
    chosen: Runs  # those that the person wants in the charts
    names: Mapping[str, str]  # run id -> its name on the page
    metric: str
    scope: str  # a key of SCOPES
    store: Store | SessionStore
    table: PublishedTable | None = None  # a paper's figures, to draw beside ours

    @property
    def ids(self) -> list[str]:
        return [run.id for run in self.chosen]

    @cached_property
    def summaries(self) -> dict[str, Mapping[str, Any]]:
        return {key: self.store.evaluations.evaluation_report(key).get("summary") or {} for key in self.ids}

    @cached_property
    def errors(self) -> Mapping[str, Mapping[str, int]]:
        found: Mapping[str, Mapping[str, int]] = self.store.evaluations.error_counts(self.ids, multi=self.scope == "multi")
        return found

    @cached_property
    def groups(self) -> Mapping[str, Sequence[GroupMean]]:
        """By each of GROUPS."""
        return {by: self.store.evaluations.group_means(self.ids, self.metric, by) for by in GROUPS}


def chosen_runs(request: ChartRequest) -> Runs:
    return request.chosen


def all_runs(request: ChartRequest) -> Runs:
    return request.runs


@dataclass(frozen=True)
class Record:
    """A chart.  Those with the same `menu` stand below one another under this one choice."""

    menu: str
    key: str
    title: str  # where there is nothing to draw
    applies: Callable[[ChartRequest, StoredEvaluation], bool]  # whether it can show this run
    empty: str  # what a run must have, for people; {metric} and {scope} are what is chosen
    draw: Callable[[ChartRequest, Runs], Chart]  # of the runs to which it applies: at least one, or a published table
    of: Callable[[ChartRequest], Runs] = chosen_runs  # the runs that are looked at
    by_metric: bool = False  # whether it shows the chosen metric
    metrics: tuple[str, ...] = ()  # those that it shows whatever is chosen
    published: str = ""  # the papers' tables that can stand beside it (`shows` in figures.json)

    def chart(self, request: ChartRequest) -> Chart:
        kept = [run for run in self.of(request) if self.applies(request, run)]
        if kept:
            return self.draw(request, kept)
        said = {"metric": request.metric, "scope": SCOPES[request.scope]}
        empty = self.empty.format(**said)
        if request.table is None:
            return Chart(self.key, self.title.format(**said), None, empty=empty)
        alone = self.draw(request, [])  # what a paper reports can be seen before there are own runs
        return replace(alone, caption=f"{empty}. {alone.caption}".replace(".. ", ". "))


def is_share(metric: str) -> bool:
    return metric not in COUNT_METRICS


def format_score(metric: str, value: float | None) -> str:
    """A share in hundredths, a count as it is."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if is_share(metric) else f"{value:.2f}"


def published_source(table: PublishedTable) -> str:
    return f"published in {table.label}, on other data"


def layout(figure: go.Figure, height: int, **more: object) -> go.Figure:
    figure.update_layout(
        height=height,
        font={"family": FONT},
        margin={"l": 8, "r": 8, "t": 80, "b": 8},  # above: the buttons, and a legend of two lines
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        **more,
    )
    return figure


def bars(names: Sequence[str], values: Sequence[float | None], **more: object) -> go.Bar:
    return go.Bar(y=[chart_text(n, 44) for n in names], x=list(values), orientation="h", **more)  # type: ignore[arg-type]
