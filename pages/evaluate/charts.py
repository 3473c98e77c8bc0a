"""The charts of the evaluate page: each a record over a tidy data frame.  A new chart is one record in CHARTS."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import streamlit as st

from core.metrics.calibration import by_chance
from core.systems import entry_of, is_rankable
from pages.evaluate.data import SCOPES, summary_of
from pages.ui import charts as drawing
from pages.ui.formatting import axis, scaled
from pages.ui.markup import escape, full_label
from pages.ui.tables import csv_button, table
from storage.records.results import StoredEvaluation
from storage.results.evaluations import Grouping
from storage.store import SessionStore, Store

Runs = Sequence[StoredEvaluation]
MAX_RETRIEVAL_RUNS = 20
TRAINING, ABLATION, ZERO_SHOT = "training questions", "ablation", "zero-shot"  # tags of a run
UNRANKED = " *"  # after the name of a system that shows a mechanism only
FULL_MODEL = "none"  # left out of an ablation
GROUNDED = ("G-precision", "G-recall", "G-F1", "Sufficient%", "ungrounded precision", "ungrounded recall")
BUCKETS = {
    "missed": "missed, though in the passages",
    "not_retrieved": "not retrieved",
    "alias_mismatch": "alias mismatch",
    "spurious": "spurious",
    "duplicate": "duplicate",
    "stopped_early": "questions stopped too early",
    "ran_on": "questions that ran too long",
}
_AT_K = re.compile(r"(R|MRecall)@(\d+)")


@dataclass(frozen=True)
class ChartRequest:
    """The runs and the metric that a person chose."""

    runs: Runs  # all that match the filters
    selected: Runs  # those that the person wants in the charts
    names: Mapping[str, str]  # run id -> its name on the page
    metric: str
    scope: str  # a key of SCOPES
    store: Store | SessionStore

    def summary(self, run: StoredEvaluation, part: str) -> Mapping[str, Any]:
        return summary_of(run.id, self.store).get(part) or {}


@dataclass(frozen=True, eq=False)
class EvaluationChart:
    """Charts with the same `menu` are one choice, drawn below one another."""

    menu: str
    key: str
    frame: Callable[[ChartRequest], pd.DataFrame]  # a row for each mark; empty: the chart is not offered
    draw: Callable[..., go.Figure]
    marks: Mapping[str, Any]  # plotly express's arguments
    caption: str = ""
    title: str = ""  # where it differs from the menu; {metric} is the chosen one
    layout: Mapping[str, Any] = field(default_factory=dict)
    value: str = ""  # name of the axis of values, where it is not the chosen metric
    metrics: tuple[str, ...] = ()  # in the chart, where they are not the chosen one


# ---------------------------------------------------------------- frames


@st.cache_data(show_spinner=False, max_entries=100)
def _error_counts(run_ids: list[str], multi: bool, _store: Store | SessionStore) -> Mapping[str, Mapping[str, int]]:
    return _store.evaluations.error_counts(run_ids, multi=multi)


@st.cache_data(show_spinner=False, max_entries=100)
def _group_means(run_ids: list[str], metric: str, grouping: Grouping, _store: Store | SessionStore) -> list[Any]:
    return list(_store.evaluations.group_means(run_ids, metric, grouping))


def _scores(
    request: ChartRequest,
    runs: Runs,
    metrics: Sequence[str],
    scopes: Sequence[str] = tuple(SCOPES),
    name: Callable[[StoredEvaluation], str] | None = None,
) -> pd.DataFrame:
    """One row for each score."""
    return pd.DataFrame(
        {
            "run": name(run) if name else request.names[run.id],
            "metric": metric,
            "questions": scope,
            "value": scaled(metric, score.mean),
            "low": scaled(metric, score.low),
            "high": scaled(metric, score.high),
            "n": score.n,
        }
        for run in runs
        for metric in metrics
        for scope in scopes
        if (score := run.scores.get(metric, {}).get(scope))
    )


def _quality(request: ChartRequest) -> pd.DataFrame:
    def name(run: StoredEvaluation) -> str:
        return request.names[run.id] + ("" if is_rankable(run.system, run.checkpoint) else UNRANKED)

    return _scores(request, request.selected, [request.metric], name=name)


def _time(request: ChartRequest) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "run": request.names[r.id],
            "seconds (median)": r.seconds_median,
            "seconds (p95)": r.seconds_p95,
            "value": scaled(request.metric, r.mean(request.metric, request.scope)),
            "parameters": r.parameters,
            "peak memory (MB)": r.peak_memory_mb,
            "size": float(r.parameters or 1),
        }
        for r in request.selected
        if r.seconds_median and r.mean(request.metric, request.scope) is not None
    )


def _training_size(request: ChartRequest) -> pd.DataFrame:
    parts = [
        _scores(request, [r], [request.metric], name=lambda r: f"{r.system} · {r.questions}").assign(**{TRAINING: float(size)})
        for r in request.runs
        if isinstance(size := r.tags.get(TRAINING), int | float) and not isinstance(size, bool)
    ]
    frame = pd.concat(parts) if parts else pd.DataFrame()
    return frame.sort_values(TRAINING) if len(frame) else frame


def _ablations(request: ChartRequest) -> pd.DataFrame:
    def variant(run: StoredEvaluation) -> str:
        part = str(run.tags[ABLATION])
        return f"{run.system}{', full' if part == FULL_MODEL else f' without {part}'} · {run.questions}"

    runs = [r for r in request.runs if r.tags.get(ABLATION) is not None]
    runs.sort(key=lambda r: (r.questions, str(r.tags[ABLATION]) != FULL_MODEL))
    return _scores(request, runs, [request.metric], name=variant)


def _variants(request: ChartRequest) -> pd.DataFrame:
    def variant(run: StoredEvaluation) -> str:
        return f"{request.names[run.id]} ({'zero-shot' if run.tags.get(ZERO_SHOT) else 'supervised'})"

    runs = [r for r in request.runs if r.tags.get(ZERO_SHOT) or entry_of(r.system).decoding]
    return _scores(request, runs, [request.metric], name=variant)


def _retrieval(request: ChartRequest) -> pd.DataFrame:
    """Retrieval figures of the selected runs, and of the runs that measure nothing else, which would be last in every order."""
    retrieval_only = [r for r in request.runs if r.scores and all(map(_AT_K.fullmatch, r.scores))]
    runs = [*[r for r in request.selected if r not in retrieval_only], *retrieval_only][:MAX_RETRIEVAL_RUNS]
    metrics = dict.fromkeys(m for r in runs for m in r.scores if _AT_K.fullmatch(m))
    frame = _scores(request, runs, list(metrics), [request.scope])
    if frame.empty:
        return frame
    return frame.assign(
        measure=[m.partition("@")[0] + "@k" for m in frame["metric"]],
        passages=[int(m.partition("@")[2]) for m in frame["metric"]],
    ).sort_values("passages", kind="stable")


def _judged(request: ChartRequest) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "interpretations of": f"{request.names[r.id]}: {cell}",
            "judgment": judgment,
            "interpretations": counts["right"] if judgment == "right" else counts["n"] - counts["right"],
        }
        for r in request.selected
        for cell, counts in request.summary(r, "judged").items()
        for judgment in ("right", "wrong")
    )


def _cost(request: ChartRequest) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "run": request.names[r.id],
            "calls": name,
            "calls per question": cost.get(part, 0),
            "seconds": cost.get("seconds", 0.0),
            "seconds in the model": cost.get("model_seconds", 0.0),
        }
        for r in request.selected
        if (cost := request.summary(r, "cost"))
        for part, name in (("retriever_calls", "searches"), ("model_calls", "model calls"))
    )


def _reliability(request: ChartRequest) -> pd.DataFrame:
    rows = []
    for run in request.selected:
        for event, calibration in request.summary(run, "reliability").items():
            chance = by_chance([(b["n"], b["said"]) for b in calibration["bins"]])
            rows += [
                {
                    "run": request.names[run.id],
                    "probability of": event,
                    "stated": b["said"],
                    "right": b["so"],
                    "n": b["n"],
                    "calibration error": calibration["error"],
                    "by chance up to": chance,
                }
                for b in calibration["bins"]
            ]
    return pd.DataFrame(rows)


def _errors(request: ChartRequest) -> pd.DataFrame:
    counts = _error_counts([r.id for r in request.selected], request.scope == "multi", request.store)
    return pd.DataFrame(
        {"run": request.names[r.id], "error": words, "count": counts[r.id][bucket]}
        for r in request.selected
        for bucket, words in BUCKETS.items()
        if bucket in counts.get(r.id, {})
    )


def _groups(grouping: Grouping) -> Callable[[ChartRequest], pd.DataFrame]:
    def frame(request: ChartRequest) -> pd.DataFrame:
        means = _group_means([r.id for r in request.selected], request.metric, grouping, request.store)
        return pd.DataFrame(
            {"run": request.names[g.evaluation_id], grouping: g.group, "n": g.n, "value": scaled(request.metric, g.mean)}
            for g in means
        )

    return frame


def _means(metrics: tuple[str, ...]) -> Callable[[ChartRequest], pd.DataFrame]:
    return lambda request: _scores(request, request.selected, metrics, [request.scope])


# ---------------------------------------------------------------- the charts

BY_QUESTIONS = {"x": "value", "y": "run", "color": "questions", "orientation": "h"}
BY_METRIC = {"x": "value", "y": "run", "color": "metric", "orientation": "h"}
INTERVALS = "Means with 95% bootstrap intervals over questions."
RELIABILITY = EvaluationChart(
    "Reliability",
    "reliability",
    _reliability,
    px.line,
    {
        "x": "stated",
        "y": "right",
        "color": "run",
        "line_dash": "probability of",
        "markers": True,
        "hover_data": ["n", "calibration error", "by chance up to"],
    },
    'Of the answers and of "no further answer" ([EOI] in the paper). '
    "Closer to the dashed line is better; below it, the system is overconfident. Calibration error: the mean distance from that line. By chance up to: what a perfectly calibrated system stays below in 95 "
    "of 100 such runs, so that a smaller error is no sign of a fault. Runs without probabilities are not drawn.",
    title="Reliability of probabilities",
    layout={
        "shapes": [{"type": "line", "x0": 0, "y0": 0, "x1": 1, "y1": 1, "line": {"dash": "dash", "color": drawing.NEUTRAL}}]
    },
    metrics=("reliability",),
)
CHARTS = (
    EvaluationChart(
        "Quality",
        "quality",
        _quality,
        px.bar,
        BY_QUESTIONS,
        f"{INTERVALS} A system marked with{UNRANKED} shows a mechanism only and is not ranked.",
        "Quality: {metric}",
    ),
    EvaluationChart(
        "Time and quality",
        "latency",
        _time,
        px.scatter,
        {"x": "seconds (median)", "y": "value", "color": "run", "size": "size", "size_max": 40, "log_x": True},
        "Further left is faster. The area of a circle shows the number of parameters; the smallest ones are unknown.",
    ),
    EvaluationChart(
        "Training-set size",
        "training-size",
        _training_size,
        px.line,
        {"x": TRAINING, "y": "value", "color": "run", "line_dash": "questions", "markers": True, "log_x": True},
        INTERVALS,
    ),
    EvaluationChart(
        "Precision and recall",
        "precision-recall",
        _means(("precision", "recall")),
        px.bar,
        BY_METRIC,
        value="mean (%), higher is better",
        metrics=("precision", "recall"),
    ),
    EvaluationChart(
        "Precision and recall",
        "answers",
        _means(("answers", "reference answers")),
        px.bar,
        BY_METRIC,
        title="Number of answers",
        value="answers per question",
        metrics=("answers", "reference answers"),
    ),
    EvaluationChart("Ablations", "ablations", _ablations, px.bar, BY_QUESTIONS),
    EvaluationChart(
        "Zero-shot and decoding",
        "variants",
        _variants,
        px.bar,
        BY_QUESTIONS,
        "Each run says whether its weights are zero-shot or supervised, which saw questions with several answers in training.",
        "Zero-shot and decoding variants",
    ),
    EvaluationChart(
        "Retrieval",
        "retrieval",
        _retrieval,
        px.line,
        {"x": "passages", "y": "value", "color": "run", "line_dash": "measure", "markers": True, "log_x": True},
        "R@k: at least one answer is in the top k passages. MRecall@k: all n answers are (or k of them if n > k).",
        value="share of questions (%), higher is better",
        metrics=("R@k",),
    ),
    EvaluationChart(
        "Grounding",
        "grounded",
        _means(GROUNDED),
        px.bar,
        {"x": "metric", "y": "value", "color": "run"},
        title="Grounded interpretations",
        value="share (%), higher is better",
        metrics=GROUNDED,
    ),
    EvaluationChart(
        "Grounding",
        "judged",
        _judged,
        px.bar,
        {"x": "interpretations", "y": "interpretations of", "color": "judgment", "orientation": "h", "barmode": "stack"},
        title="Where interpretations go wrong",
        metrics=("interpretations",),
    ),
    EvaluationChart(
        "Grounding",
        "cost",
        _cost,
        px.bar,
        {
            "x": "calls per question",
            "y": "run",
            "color": "calls",
            "orientation": "h",
            "hover_data": ["seconds", "seconds in the model"],
        },
        caption="Fewer are better.",
        title="Calls and time",
        metrics=("calls",),
    ),
    RELIABILITY,
    EvaluationChart(
        "Errors",
        "errors",
        _errors,
        px.bar,
        {"x": "count", "y": "run", "color": "error", "orientation": "h"},
        "Fewer are better. Each missing answer counts as missed, not retrieved or alias mismatch. Each wrong one counts as alias mismatch, spurious or duplicate.",
        metrics=("errors",),
    ),
    *(
        EvaluationChart(
            "Groups",
            f"by-{grouping}",
            _groups(grouping),
            px.bar,
            {"x": grouping, "y": "value", "color": "run", "hover_data": ["n"]},
            title=f"{{metric}} by {grouping}",
        )
        for grouping in ("ambiguity", "source")
    ),
)


def drawable(request: ChartRequest) -> dict[EvaluationChart, pd.DataFrame]:
    """The charts for which there is data, each with its data."""
    return {chart: frame for chart in CHARTS if len(frame := chart.frame(request))}


def draw(chart: EvaluationChart, frame: pd.DataFrame, metric: str) -> None:
    """The chart with its data below."""
    title, measure = (chart.title or chart.menu).format(metric=metric), chart.value or axis(metric)
    st.subheader(title)
    labels = {"value": measure, "stated": "stated probability", "right": "share that was right"}
    chart_figure = drawing.figure(chart.draw, frame, labels=labels, layout=chart.layout, **chart.marks)
    drawing.show(
        chart_figure, f"evaluate.chart.{chart.key}", f"{title}. {chart.caption} The same data are in the table under Data."
    )
    if chart.caption:
        st.caption(escape(chart.caption))
    data = frame.rename(columns={**labels, "low": "95% interval from", "high": "95% interval to"})
    with st.container(horizontal=True, vertical_alignment="center"):
        csv_button(data, title, f"evaluate.csv.{chart.key}")
        with st.popover(full_label("Data", f"of {title}"), icon=":material/table:"):
            table(data, f"Data of the chart: {title}")
