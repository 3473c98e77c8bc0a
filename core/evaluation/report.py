"""The report of an evaluation: rows, means, intervals, tables by group, timings, and provenance."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from itertools import product
from statistics import fmean, stdev
from typing import Any

import numpy as np

from core import trace
from core import types as t
from core.errors import AmbiscopeError
from core.evaluation.summary import failed_calls, summary_of
from core.metrics import METRICS, entry_of
from core.metrics.base import Value
from core.metrics.grounding import SUFFICIENT_FROM
from core.metrics.score.scoring import Table, table
from core.metrics.significance.bootstrap import harmonic_interval, interval
from core.settings import ROOT
from core.text import listed
from core.types import SCOPES

ReportRow = dict[str, Any]


def row_head(question: t.ReferenceQuestion) -> ReportRow:
    """The part of a report's row that describes the question."""
    return {
        "id": question.id,
        "question": question.question,
        "source": question.extra.get("source"),
        "ambiguity": question.extra.get("ambiguity"),
        "ambiguous": question.ambiguous,
        "references": [[list(p.answers) for p in a.pairs] for a in question.annotations],
    }


@dataclass(frozen=True, slots=True)
class Report:
    """Values are fractions and seconds; None if undefined.  Failed questions are counted and left out of every mean.
    `judge_failed`: the number of questions on which the judge left something undecided.  They are left out of the judged
    figures that need it, and of no other.

    `counts[metric]["all" | "multi"]`: on how many questions that mean is defined.  `scores[metric]["all" | "multi"]` is a mean, `intervals[metric]["all" | "multi"]` its 95% bootstrap interval [low, high].
    `by_source` and `by_ambiguity`: group -> n, failed, counts, scores.  `timings`: seconds of questions that did not fail (median, p95), seconds
    to the first answer (median), peak memory of this process in MB.
    """

    n: int
    failed: int
    rows: list[ReportRow]
    scores: Table
    intervals: dict[str, dict[str, list[float] | None]]
    by_source: dict[str, ReportRow]
    by_ambiguity: dict[str, ReportRow]
    timings: dict[str, Value]
    provenance: dict[str, Any]
    summary: dict[str, Any] = field(default_factory=dict)  # core.evaluation.summary
    judge_failed: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    repeats: dict[str, Any] = field(default_factory=dict)  # `over_repeats`, of a run that was repeated

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, in the order of the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def problems(self) -> list[str]:
        """Messages about failed questions, failed judgments and failed model calls; empty if nothing failed."""
        messages = []
        for count, name, problem in (
            (self.failed, "error", "failed"),
            (self.judge_failed, "judge_error", "could not be judged completely"),
        ):
            if count:
                first = next((row[name] for row in self.rows if row.get(name) is not None), "")
                messages.append(f"{count:,} of {listed(self.n, 'question')} {problem}; the first one: {first}")
        metric_errors = [(name, error) for row in self.rows for name, error in row.get("metric_errors", {}).items()]
        for name, count in Counter(name for name, _ in metric_errors).items():
            messages.append(
                f"{name} is undefined for {listed(count, 'question')}; the first one: {dict(reversed(metric_errors))[name]}"
            )
        return messages + failed_calls(self.summary)

    def demand(self) -> None:
        """Raises AmbiscopeError if every question failed."""
        if self.failed == self.n:
            raise AmbiscopeError(f"every question failed; the first one: {self.rows[0]['error']}")


def build_report(
    rows: Sequence[ReportRow],
    info: t.SystemInfo,
    *,
    seed: int,
    bootstrap: int,
    questions_digest: str,
    judge: ReportRow | None = None,
    facts: ReportRow | None = None,
) -> Report:
    """Builds the report from an evaluation's rows, which aren't changed.  `facts`: plain values for the provenance."""
    fine = [row for row in rows if row["error"] is None]
    clarifies = any(answer["question"] for row in fine for answer in row["answers"])
    ks = {row["k"] for row in fine if row["k"] is not None}
    k = ks.pop() if len(ks) == 1 else None
    report_rows = [dict(row) if row["error"] is not None else _report_row(row, clarifies, k) for row in rows]
    fine = [row for row in report_rows if row["error"] is None]
    names = _names(fine)
    return Report(
        n=len(rows),
        failed=len(rows) - len(fine),
        rows=report_rows,
        scores=_scores(fine, names),
        intervals=intervals_of(fine, names, seed, bootstrap),
        by_source=_groups(report_rows, "source", names),
        by_ambiguity=_groups(report_rows, "ambiguity", names),
        timings={
            "seconds_median": percentile([r["seconds"] for r in fine], 0.5),
            "seconds_p95": percentile([r["seconds"] for r in fine], 0.95),
            "first_answer_seconds_median": percentile([r["first_answer_seconds"] for r in fine], 0.5),
            "peak_memory_mb": peak_memory_mb(),
            "peak_gpu_memory_mb": peak_gpu_memory_mb(),
        },
        provenance=build_provenance(info, seed, bootstrap, questions_digest, {"judge": judge, **(facts or {})}),
        summary=summary_of(rows),
        judge_failed=sum(row.get("judge_error") is not None for row in rows),
        counts=counts_of(fine, names),
    )


def counts_of(rows: Sequence[ReportRow], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of questions on which each metric is defined: `Report.counts`."""
    defined = {name: [r["ambiguous"] for r in rows if r["metrics"][name] is not None] for name in names}
    return {name: {"all": len(kinds), "multi": sum(map(bool, kinds))} for name, kinds in defined.items()}


def _report_row(row: ReportRow, clarifies: bool, k: int | None) -> ReportRow:
    """A row with its metrics as reported: R@10 for R@k if every question used k = 10, and no question metrics for a system that
    writes no questions."""
    metrics = {
        name if k is None else name.replace("@k", f"@{k}"): value if clarifies or not entry_of(name).of_questions else None
        for name, value in row["metrics"].items()
    }
    return row | {"metrics": metrics}


def _registered(label: str) -> str:
    """The registry's name for a label: R@k for R@10."""
    return label if label in METRICS else f"{label.partition('@')[0]}@k"


def _names(fine: Sequence[ReportRow]) -> list[str]:
    """The metrics that are defined for some question, and in any case F1 answer."""
    labels = list(fine[0]["metrics"]) if fine else ["F1 answer"]
    return [n for n in labels if n == "F1 answer" or any(r["metrics"][n] is not None for r in fine)]


def _weights(rows: Sequence[ReportRow], name: str) -> list[float] | None:
    return [r["weights"][_registered(name)] for r in rows] if rows and _registered(name) in rows[0]["weights"] else None


def _scores(rows: Sequence[ReportRow], names: Sequence[str]) -> Table:
    values = [{_registered(n): r["metrics"][n] for n in names} for r in rows]
    weights = {_registered(n): w for n in names if (w := _weights(rows, n)) is not None}
    means = table(values, [r["ambiguous"] for r in rows], [_registered(n) for n in names], weights)
    return {name: means[_registered(name)] for name in names}


def intervals_of(
    rows: Sequence[ReportRow], names: Sequence[str], seed: int, samples: int
) -> dict[str, dict[str, list[float] | None]]:
    """The 95% bootstrap interval [low, high] of each mean: `Report.intervals`."""
    intervals: dict[str, dict[str, list[float] | None]] = {name: {} for name in names}
    for name, scope in product(names, SCOPES):
        part = [r for r in rows if scope == "all" or r["ambiguous"]]
        if factors := entry_of(_registered(name)).harmonic_of:
            first, second = ([r["metrics"][factor] for r in part] for factor in factors)
            ends = harmonic_interval(first, second, samples=samples, seed=seed)
        else:
            ends = interval([r["metrics"][name] for r in part], weights=_weights(part, name), samples=samples, seed=seed)
        intervals[name][scope] = list(ends) if ends else None
    return intervals


def _groups(rows: Sequence[ReportRow], field: str, names: Sequence[str]) -> dict[str, ReportRow]:
    """One group per value of the field, sorted, with "(none)" for questions without one; empty if no question has the field."""
    if not any(row[field] for row in rows):
        return {}
    rows_by_name: dict[str, list[ReportRow]] = defaultdict(list)
    for row in rows:
        rows_by_name[row[field] or "(none)"].append(row)
    groups = {}
    for name in sorted(rows_by_name):
        group = rows_by_name[name]
        fine = [row for row in group if row["error"] is None]
        groups[name] = {
            "n": len(group),
            "failed": len(group) - len(fine),
            "counts": counts_of(fine, names),
            "scores": _scores(fine, names),
            "seconds_median": percentile([r["seconds"] for r in fine], 0.5),
        }
    return groups


def percentile(values: Sequence[Value], share: float) -> Value:
    """Linear interpolation between the two nearest ranks of the defined values; None if there is none.

    >>> percentile([1.0, None, 3.0], 0.5), percentile([], 0.5)
    (2.0, None)
    """
    defined = [v for v in values if v is not None]
    return float(np.quantile(defined, share)) if defined else None


def peak_memory_mb() -> Value:
    """The largest resident memory of this process so far, in MB of 10^6 bytes; None if the system doesn't report it
    (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if platform.system() == "Darwin" else peak * 1024 / 1e6  # bytes there, KiB elsewhere


def peak_gpu_memory_mb() -> Value:
    """The most memory that torch held on all GPUs together, in MB of 10^6 bytes; None if it used none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return float(sum(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count()))) / 1e6


def build_provenance(
    info: t.SystemInfo, seed: int, bootstrap: int, questions_digest: str, facts: ReportRow | None = None
) -> ReportRow:
    """The provenance of a report: system, code, seeds, libraries, machine, and the given facts, as plain JSON values."""
    return {
        "system": to_plain(trace.to_json(info)),
        "settings": to_plain(trace.to_json(info.settings)),
        "commit": _output("git", "rev-parse", "HEAD"),
        "changed_since_commit": bool(changes) if (changes := _output("git", "status", "--porcelain")) is not None else None,
        "questions_digest": questions_digest,
        "seed": seed,
        "bootstrap": bootstrap,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "transformers")},
        "faiss": _version("faiss-gpu") or _version("faiss-cpu"),
        **_gpu(),
        "sufficient_from": SUFFICIENT_FROM,
        **to_plain(facts or {}),
    }


def digest_of(questions: Sequence[t.ReferenceQuestion]) -> str:
    """A digest of the questions with references and passages, in order."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(json.dumps(trace.to_json(question), sort_keys=True, default=str).encode() + b"\n")
    return digest.hexdigest()


def to_plain(value: Any) -> Any:
    """The value as it would be read back from JSON, so that equal settings compare equal.  Other types become text."""
    return json.loads(json.dumps(value, default=str))


def _output(*command: str) -> str | None:
    """The output of a command in the repository's folder; None if it fails."""
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _gpu() -> dict[str, str | None]:
    """The first GPU that torch sees, its driver as NVIDIA's tool reports it, and torch's CUDA version; None if there is no
    GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {"gpu": None, "driver": None, "cuda": None}
    driver = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or ""
    return {"gpu": torch.cuda.get_device_name(0), "driver": driver.partition("\n")[0] or None, "cuda": torch.version.cuda}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def over_repeats(reports: Sequence[Report]) -> Report:
    """The first of several reports of one evaluation, with the variation over the repeats, which no interval over questions
    shows.

    `repeats`: their number `n`, and by metric and scope the `mean` and the sample `deviation` of the scores; None if a score is undefined.
    """
    mean: dict[str, dict[str, float | None]] = {}
    deviation: dict[str, dict[str, float | None]] = {}
    for name, scopes in reports[0].scores.items():
        rows = [r.scores[name] for r in reports if name in r.scores]  # a report lacks what is undefined for all its questions
        values = {scope: [v for row in rows if (v := row[scope]) is not None] for scope in scopes}
        mean[name] = {scope: fmean(v) if v else None for scope, v in values.items()}
        deviation[name] = {scope: stdev(v) if len(v) > 1 else None for scope, v in values.items()}
    return replace(reports[0], repeats={"n": len(reports), "mean": mean, "deviation": deviation})
