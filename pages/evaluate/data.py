"""Shared parts of the Evaluate page: runs with their names and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.ui.formatting import format_score
from storage.records.results import StoredEvaluation
from storage.store import SessionStore, Store

VIEWS = ("All runs", "Two runs", "One run", "Start and store")
SCOPES = {"all": "all questions", "multi": "ambiguous questions (multi)"}
COLUMN_WIDTHS = (3, 1)  # of a chart and of its selectors


def choose_metric(runs: Sequence[StoredEvaluation]) -> tuple[str, str]:
    """The metric and the questions (a key of SCOPES) that the person chooses."""
    metric = st.selectbox("Metric", metrics_of(runs) or ["F1 answer"], key="evaluate.metric")
    scope = st.selectbox("Questions", list(SCOPES), format_func=lambda scope: SCOPES[scope].capitalize(), key="evaluate.scope")
    return str(metric), str(scope)


@st.cache_data(show_spinner=False, max_entries=500)
def summary_of(run_id: str, _store: Store | SessionStore) -> Mapping[str, Any]:
    """The `summary` of a run's report.  A stored run never changes, and no two stores have one of the same id."""
    summary: Mapping[str, Any] = _store.evaluations.evaluation_report(run_id).get("summary") or {}
    return summary


def names(runs: Sequence[StoredEvaluation]) -> dict[str, str]:
    """Run id -> a distinct name for people: its label or system, with the question file if they differ and part of the id if
    needed."""
    short = {run.id: run.label or run.system for run in runs}
    if len({run.questions for run in runs}) > 1:
        short = {run.id: f"{short[run.id]} · {run.questions}" for run in runs}
    counts = Counter(short.values())
    return {key: name if counts[name] == 1 else f"{name} #{key[:4]}" for key, name in short.items()}


def metrics_of(runs: Sequence[StoredEvaluation]) -> list[str]:
    """The metrics that some run has, F1 answer first."""
    metrics = dict.fromkeys(m for run in runs for m in run.scores)
    return sorted(metrics, key=lambda m: m != "F1 answer")


def interval(metric: str, low: float | None, high: float | None, sign: str = "") -> str:
    """A 95% interval as text.  `sign`: "+" for a difference's."""
    return "" if low is None or high is None else f"{format_score(metric, low, sign)} to {format_score(metric, high, sign)}"
