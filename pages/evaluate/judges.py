"""Who judged the grounded figures of the evaluate page, and how far that judge agrees with people.  What is undefined says so and is no number."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.metrics.agreement.chance import Figure
from pages.evaluate import source
from pages.evaluate.charts.grounding import GROUNDED
from pages.quality.tables import UNDEFINED, interval, value, value_with_interval
from pages.ui.markup import escape
from storage.analysis.judges import MAX_LABELS, JudgeAgreement, judge_agreement, judges_of
from storage.records.results import StoredEvaluation

JUDGED = ("interpretations", *GROUNDED)  # the metrics that a judge decides (core.metrics.grounding)
MOST = 100  # runs for which agreement is calculated at once
HOLD_SECONDS = 20.0  # a click elsewhere on the page should not wait for it again
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
    found = about.get("prompts")
    if not isinstance(found, dict):
        return "none: no language model is used" if about else UNKNOWN
    kept = {role: found[role] for role in ROLES if role in found} or found
    return ", ".join(f"{role} {version}" for role, version in kept.items())


def model_of(about: Mapping[str, Any]) -> str:
    """The language model, or the reader and answerer that play its part."""
    if not about:
        return UNKNOWN
    if about.get("model"):
        return str(about["model"])
    parts = [f"{name} {about[name]}" for name in ("reader", "answerer") if about.get(name)]
    return ", ".join(parts) or "none"


def kappa_of(found: JudgeAgreement) -> str:
    """In one cell: value, interval and n, or why it is undefined."""
    kappa = found.row.kappa
    return f"{value_with_interval(kappa)}, n {kappa.n}" if kappa.defined else f"{UNDEFINED}: {kappa.why}"


@dataclass(frozen=True)
class Judges:
    """By run: what its report says of its judge, and for the first MOST runs how far the judge agrees with people."""

    about: Mapping[str, Mapping[str, Any]]
    agreement: Mapping[str, JudgeAgreement]

    @property
    def truncated(self) -> bool:
        return any(a.truncated for a in self.agreement.values())


def judges(runs: Sequence[StoredEvaluation]) -> Judges:
    """Of the runs that a judge decided something of, held for a moment.  Raises StorageError."""
    ids = tuple(run.id for run in runs if has_judged(run))
    held: dict[tuple[str, ...], tuple[float, Judges]] = st.session_state.setdefault("evaluate.judges", {})
    for key in [k for k, (since, _) in held.items() if time.monotonic() - since > HOLD_SECONDS]:
        del held[key]
    if ids not in held:
        store = source.store().store_for("see evaluations")
        found = Judges(judges_of(store, ids), judge_agreement(store, ids[:MOST]))
        held[ids] = time.monotonic(), found
    return held[ids][1]


def rows(runs: Sequence[StoredEvaluation], called: Mapping[str, str], found: Judges) -> list[dict[str, Any]]:
    out = []
    for run in runs:
        about, a = found.about.get(run.id), found.agreement.get(run.id)
        if about is None:
            continue
        kappa = a.row.kappa if a is not None else Figure("", None, None, 0, NOT_CALCULATED)
        out.append(
            {
                "Run": called[run.id],
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


def with_judge_columns(ranked: Sequence[StoredEvaluation], cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The leaderboard's rows of a judged metric with judge, prompt versions and kappa after the metric's own columns."""
    found, out = judges(ranked), []
    for run, row in zip(ranked, cells, strict=True):
        about, a = found.about.get(run.id), found.agreement.get(run.id)
        said = ("", "", "") if about is None else (judge_of(about), prompts_of(about), kappa_of(a) if a else NOT_CALCULATED)
        more = dict(zip(("judge", "prompt versions", "kappa with people"), said, strict=True))
        at = list(row).index("n")
        out.append(dict([*list(row.items())[:at], *more.items(), *list(row.items())[at:]]))
    return out


def draw(runs: Sequence[StoredEvaluation], called: Mapping[str, str]) -> None:
    """A line for each run that a judge decided something of."""
    found = judges(runs)
    if not found.about:
        return
    st.markdown("**Judge of the grounded metrics, and its agreement with people**")
    st.dataframe(
        pd.DataFrame(rows(runs, called, found)),
        hide_index=True,
        width="stretch",
        alt="The judge of each run, its prompt versions, and Cohen's kappa with people's judgments",
    )
    explain(runs)


def explain(runs: Sequence[StoredEvaluation]) -> None:
    """What the figures mean, and what was left out."""
    found = judges(runs)
    st.caption(
        f"These metrics depend on the judge: {escape(', '.join(JUDGED))}. Cohen's kappa compares the judge (does the passage support the answer?) with most "
        "people (is it correct?) on the same questions, answers and passages; n counts them. Undefined is not zero: the reason is given beside it."
    )
    if len(found.about) > MOST:
        st.caption(
            f"Kappa is calculated for the first {MOST} of {len(found.about)} judged runs. Use the filters in the sidebar to see others."
        )
    if found.truncated:
        st.caption(f"Only people's latest {MAX_LABELS:,} judgments are used.")
