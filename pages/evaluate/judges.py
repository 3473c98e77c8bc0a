"""Who judged the grounded figures of the evaluate page, and how far that judge agrees with people.  What is undefined says so and is no number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.metrics.agreement.chance import Figure
from pages.evaluate import source
from pages.evaluate.charts import GROUNDED
from pages.quality.tables import interval, value
from pages.ui.markup import escape
from pages.ui.tables import table
from storage.analysis.judges import MAX_LABELS, JudgeAgreement, judge_agreement, judges_of
from storage.records.results import StoredEvaluation
from storage.store import Store

JUDGED = ("interpretations", *GROUNDED)  # the metrics that a judge decides (core.metrics.grounding)
MAX_RUNS = 100  # runs for which agreement is calculated at once
HELD_SECONDS = 20.0  # a click elsewhere on the page should not wait for it again
ROLES = ("verify", "match", "deduplicate")  # the prompts that a language model is asked as a judge
UNKNOWN = "unknown"
NOT_CALCULATED = "not calculated: filter the runs in the sidebar"


def is_judged(metrics: Iterable[str]) -> bool:
    return any(m in JUDGED for m in metrics)


def has_judged(run: StoredEvaluation) -> bool:
    """Whether a judge decided something of this run."""
    return any(run.mean(m) is not None for m in JUDGED)


def judge_of(about: Mapping[str, Any]) -> str:
    return str(about.get("judge") or UNKNOWN)


def prompts_of(about: Mapping[str, Any]) -> str:
    """The versions of the judge's prompts."""
    versions = about.get("prompts")
    if not isinstance(versions, dict):
        return "none" if about else UNKNOWN
    kept = {role: versions[role] for role in ROLES if role in versions} or versions
    return ", ".join(f"{role} {version}" for role, version in kept.items())


def model_of(about: Mapping[str, Any]) -> str:
    """The language model, or the reader and answerer that play its part."""
    if not about:
        return UNKNOWN
    if about.get("model"):
        return str(about["model"])
    parts = [f"{name} {about[name]}" for name in ("reader", "answerer") if about.get(name)]
    return ", ".join(parts) or "none"


@dataclass(frozen=True)
class Judges:
    """By run: what its report says of its judge, and for the first MAX_RUNS runs how far the judge agrees with people."""

    about: Mapping[str, Mapping[str, Any]]
    agreement: Mapping[str, JudgeAgreement]

    @property
    def truncated(self) -> bool:
        return any(a.truncated for a in self.agreement.values())


def judges(runs: Sequence[StoredEvaluation]) -> Judges:
    """Of the runs that a judge decided something of, held for a moment.  Raises StorageError."""
    return _judges(tuple(run.id for run in runs if has_judged(run)), source.store().store_for("see evaluations"))


@st.cache_data(show_spinner=False, ttl=HELD_SECONDS)
def _judges(ids: tuple[str, ...], _store: Store) -> Judges:
    return Judges(judges_of(_store, ids), judge_agreement(_store, ids[:MAX_RUNS]))


def rows(runs: Sequence[StoredEvaluation], run_names: Mapping[str, str], judged: Judges) -> list[dict[str, Any]]:
    out = []
    for run in runs:
        about, a = judged.about.get(run.id), judged.agreement.get(run.id)
        if about is None:
            continue
        kappa = a.row.kappa if a is not None else Figure("", None, None, 0, NOT_CALCULATED)
        out.append(
            {
                "Run": run_names[run.id],
                "Judge": judge_of(about),
                "Prompt versions": prompts_of(about),
                "Kappa with people": value(kappa),
                "95% interval": interval(kappa),
                "n": kappa.n if a is not None else None,
                "Why undefined": kappa.why,
                "Model": model_of(about),
            }
        )
    return out


def draw(runs: Sequence[StoredEvaluation], run_names: Mapping[str, str]) -> None:
    """A line for each run that a judge decided something of."""
    judged = judges(runs)
    if not judged.about:
        return
    st.markdown("**Judge of the grounded metrics, and its agreement with people**")
    found = rows(runs, run_names, judged)
    empty = [name for name in ("95% interval", "Model") if all(row[name] in ("", "none") for row in found)]
    table(
        [{name: cell for name, cell in row.items() if name not in empty} for row in found],
        "The judge of each run, its prompt versions, and Cohen's kappa with people's judgments",
    )
    st.caption(
        f"These metrics depend on the judge: {escape(', '.join(JUDGED))}. Cohen's kappa compares the judge (does the passage support the answer?) with most "
        "people (is it correct?) on the same questions, answers and passages; n counts them. Undefined is not zero: the reason is given beside it."
    )
    if len(judged.about) > MAX_RUNS:
        st.caption(
            f"Kappa is calculated for the first {MAX_RUNS} of {len(judged.about)} judged runs. Use the filters in the sidebar to see others."
        )
    if judged.truncated:
        st.caption(f"Only people's latest {MAX_LABELS:,} judgments are used.")
