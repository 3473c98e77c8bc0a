"""The remaining parts of a report: mean cost per question, calibration, and a grounded system's errors as in VerDICt's Figure
3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from core.disambiguation.outcome import outcome_of, outcome_scores, reference_outcome
from core.metrics.calibration import reliability

CELLS = {
    "relevant and answerable": (True, True),
    "relevant, not answerable": (True, False),
    "not relevant, answerable": (False, True),
    "not relevant, not answerable": (False, False),
}


def failed_calls(summary: Mapping[str, Any]) -> list[str]:
    """Messages about failed calls of a language model or reader; none for a report without such calls.

    >>> failed_calls({"calls": {"made": 40, "failed": 3}, "judge_calls": {"made": 9, "failed": 0}})
    ['3 of 40 calls of the system to its model failed']
    """
    callers = {"calls": "the system", "judge_calls": "the judge"}
    return [
        f"{calls['failed']} of {calls['made']} calls of {caller} to its model failed"
        for part, caller in callers.items()
        if (calls := summary.get(part)) and calls["failed"]
    ]


def calibration_error(summary: Mapping[str, Any]) -> float | None:
    """The expected calibration error of the answers in percentage points; None if no answer has a probability."""
    error = summary.get("reliability", {}).get("answer", {}).get("error")
    return None if error is None else 100 * error


def summary_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`cost`: means over the questions that did not fail; `calls` and `judge_calls`: calls of models over all questions,
    made and failed; `reliability`: of the answers' probabilities and of P([EOI]) (core.metrics.calibration); `judged`: interpretations by what their passage is, and how many are right.

    `outcomes`: accuracy and macro-F1 of answered, ambiguous and no answer (core.disambiguation.outcome).

    Parts without data are left out.  Source of the first and the last: Lee et al. 2025, Table 1 and Figure 3.
    """
    fine = [row for row in rows if row["error"] is None]
    summary: dict[str, Any] = {}
    costs = [row["cost"] for row in fine if isinstance(row.get("cost"), dict)]
    if costs:
        names = [n for n, v in costs[0].items() if isinstance(v, int | float)]
        summary["cost"] = {name: sum(c.get(name) or 0 for c in costs) / len(costs) for name in names}
    for name, counts in (
        ("calls", [{"made": c.get("model_calls") or 0, "failed": c.get("failed_calls") or 0} for c in costs]),
        ("judge_calls", [row["judge_calls"] for row in fine if isinstance(row.get("judge_calls"), dict)]),
    ):
        if total := sum(int(c["made"]) for c in counts):
            summary[name] = {"made": total, "failed": sum(int(c["failed"]) for c in counts)}
    for name in dict.fromkeys(name for row in fine for name in row.get("said") or {}):
        if forecasts := [(p, bool(so)) for row in fine for p, so in (row.get("said") or {}).get(name) or ()]:
            summary.setdefault("reliability", {})[name] = asdict(reliability(forecasts))
    pairs = [
        (reference, row.get("outcome") or outcome_of(len(row["answers"])))
        for row in fine
        if (reference := reference_outcome([len(annotation) for annotation in row.get("references") or ()]))
    ]
    if scores := outcome_scores(pairs):
        summary["outcomes"] = asdict(scores)
    judged = [i for row in fine for i in row.get("interpretations") or []]
    decided = [i for i in judged if i.get("relevant") is not None and i.get("answerable") is not None]
    if decided:
        summary["judged"] = {
            name: {"n": len(cell), "right": sum(1 for i in cell if i.get("right"))}
            for name, axes in CELLS.items()
            for cell in [[i for i in decided if (i["relevant"], i["answerable"]) == axes]]
        }
    return summary
