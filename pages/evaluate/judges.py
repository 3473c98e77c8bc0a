"""The judge of the evaluate page's grounded metrics, and its agreement with people.  An undefined figure is text, not a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.metrics.agreement.chance import Figure
from pages.evaluate.charts import GROUNDED
from pages.session import run_source
from pages.ui.figures import interval, value
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.analysis.judges import MAX_LABELS, JudgeAgreement, judge_agreement, judges_of
from storage.records.results import StoredEvaluation
from storage.store import Store

JUDGED = ("interpretations", *GROUNDED)  # the metrics that a judge decides (core.metrics.grounding)
MAX_RUNS = 100  # runs for which agreement is calculated at once
CACHE_SECONDS = 20.0  # a click elsewhere on the page should not wait for it again
ROLES = ("verify", "match", "deduplicate")  # the prompts that a language model is asked as a judge
UNKNOWN = "unknown"
NOT_CALCULATED = "not calculated: filter the runs in the sidebar"


def is_judged(metrics: Iterable[str]) -> bool:
    return any(m in JUDGED for m in metrics)


def prompts_of(judge: Mapping[str, Any]) -> str:
    """The versions of the judge's prompts.  `judge`: its description in a report (`core.evaluation.judges`)."""
    versions = judge.get("prompts")
    if not isinstance(versions, dict):
        return "none" if judge else UNKNOWN
    judging = {role: versions[role] for role in ROLES if role in versions} or versions
    return ", ".join(f"{role} {version}" for role, version in judging.items())


def model_of(judge: Mapping[str, Any]) -> str:
    """The language model that judges, or the reader and answerer that judge in its place."""
    if not judge:
        return UNKNOWN
    if judge.get("model"):
        return str(judge["model"])
    parts = [f"{name} {judge[name]}" for name in ("reader", "answerer") if judge.get(name)]
    return ", ".join(parts) or "none"


Descriptions = Mapping[str, Mapping[str, Any]]
Agreements = Mapping[str, JudgeAgreement]


@st.cache_data(show_spinner=False, ttl=CACHE_SECONDS)
def _judges(ids: tuple[str, ...], _store: Store) -> tuple[Descriptions, Agreements]:
    """By run: its report's description of the judge, and for the first MAX_RUNS runs the judge's agreement with people.  Raises
    StorageError."""
    return judges_of(_store, ids), judge_agreement(_store, ids[:MAX_RUNS])


def rows(
    runs: Sequence[StoredEvaluation], run_names: Mapping[str, str], descriptions: Descriptions, agreements: Agreements
) -> list[dict[str, Any]]:
    out = []
    for run in runs:
        judge, agreement = descriptions.get(run.id), agreements.get(run.id)
        if judge is None:
            continue
        kappa = agreement.row.kappa if agreement is not None else Figure("", None, None, 0, NOT_CALCULATED)
        out.append(
            {
                "Run": run_names[run.id],
                "Judge": str(judge.get("judge") or UNKNOWN),
                "Prompt versions": prompts_of(judge),
                "Kappa with people": value(kappa),
                "95% interval": interval(kappa),
                "n": kappa.n if agreement is not None else None,
                "Why undefined": kappa.why,
                "Model": model_of(judge),
            }
        )
    return out


def draw(runs: Sequence[StoredEvaluation], run_names: Mapping[str, str]) -> None:
    """One line for each run in which a judge decided something."""
    judged = tuple(run.id for run in runs if any(run.mean(m) is not None for m in JUDGED))
    descriptions, agreements = _judges(judged, run_source.store().store_for("see evaluations"))
    if not descriptions:
        return
    st.markdown("**Judge of the grounded metrics, and its agreement with people**")
    judge_rows = rows(runs, run_names, descriptions, agreements)
    empty = [name for name in ("95% interval", "Model") if all(row[name] in ("", "none") for row in judge_rows)]
    table(
        [{name: cell for name, cell in row.items() if name not in empty} for row in judge_rows],
        "The judge of each run, its prompt versions, and Cohen's kappa with people's judgments",
        csv_name="judges",
    )
    st.caption(
        f"These metrics depend on the judge: {escape(', '.join(JUDGED))}. Cohen's kappa compares the judge (does the passage support the answer?) with most "
        "people (is it correct?) on the same questions, answers and passages; n counts them. Undefined is not zero: the reason is given beside it."
    )
    if len(descriptions) > MAX_RUNS:
        st.caption(
            f"Kappa is calculated for the first {MAX_RUNS} of {len(descriptions)} judged runs. Use the filters in the sidebar to see others."
        )
    if any(a.truncated for a in agreements.values()):
        st.caption(f"Only people's latest {MAX_LABELS:,} judgments are used.")
