"""The report of an evaluation: rows, means, intervals, tables by group, timings, and provenance."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import metadata
from statistics import fmean, stdev
from typing import Any

import numpy as np

from core import trace
from core import types as t
from core.errors import AmbiscopeError
from core.evaluation.summary import failed_calls, summary_of
from core.metrics import HARMONIC, METRICS, QUESTION_METRICS
from core.metrics.base import Value
from core.metrics.grounding import SUFFICIENT_FROM
from core.metrics.score.scoring import Table, table
from core.metrics.significance.bootstrap import harmonic_interval, interval
from core.settings import ROOT
from core.text import listed

Row = dict[str, Any]


def row_head(question: t.ReferenceQuestion) -> Row:
    """The part of a report's row about the question itself."""
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
    """Values are fractions and seconds; None if undefined.  Failed questions are counted and left out of every mean.  `judge_failed`: questions
    at which the judge left something undecided; they are left out of the judged figures that need it, and of no other.

    `counts[metric]["all" | "multi"]`: on how many questions that mean is defined.  `scores[metric]["all" | "multi"]` is a mean, `intervals[metric]["all" | "multi"]` its 95% bootstrap interval [low, high].
    `by_source` and `by_ambiguity`: group -> n, failed, counts, scores.  `timings`: seconds of questions that did not fail (median, p95), seconds
    to the first answer (median), peak memory of this process in MB.
    """

    n: int
    failed: int
    rows: list[Row]
    scores: Table
    intervals: dict[str, dict[str, list[float] | None]]
    by_source: dict[str, Row]
    by_ambiguity: dict[str, Row]
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
        found = []
        for count, name, what in (
            (self.failed, "error", "failed"),
            (self.judge_failed, "judge_error", "could not be judged completely"),
        ):
            if count:
                first = next((row[name] for row in self.rows if row.get(name) is not None), "")
                found.append(f"{count} of {listed(self.n, 'question')} {what}; the first one: {first}")
        return found + failed_calls(self.summary)

    def demand(self) -> None:
        """Raises AmbiscopeError if every question failed."""
        if self.failed == self.n:
            raise AmbiscopeError(f"every question failed; the first one: {self.rows[0]['error']}")


def build_report(
    rows: Sequence[Row],
    info: t.SystemInfo,
    *,
    seed: int,
    bootstrap: int,
    questions_digest: str,
    judge: Row | None = None,
    about: Row | None = None,
) -> Report:
    """Builds the report from an evaluation's rows, which are not changed."""
    shown = [_shown(row, clarifies=_clarifies(rows), k=_same_k(rows)) for row in rows]
    fine = [row for row in shown if row["error"] is None]
    names = _names(fine)
    return Report(
        n=len(rows),
        failed=len(rows) - len(fine),
        rows=shown,
        scores=_scores(fine, names),
        intervals=_intervals(fine, names, seed, bootstrap),
        by_source=_groups(shown, "source", names),
        by_ambiguity=_groups(shown, "ambiguity", names),
        timings={
            "seconds_median": percentile([r["seconds"] for r in fine], 0.5),
            "seconds_p95": percentile([r["seconds"] for r in fine], 0.95),
            "first_answer_seconds_median": percentile([r["first_answer_seconds"] for r in fine], 0.5),
            "peak_memory_mb": peak_memory_mb(),
            "peak_gpu_memory_mb": peak_gpu_memory_mb(),
        },
        provenance=_provenance(info, seed, bootstrap, questions_digest) | {"judge": to_plain(judge)} | to_plain(about or {}),
        summary=summary_of(rows),
        judge_failed=sum(row.get("judge_error") is not None for row in rows),
        counts=counts_of(fine, names),
    )


def counts_of(rows: Sequence[Row], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of questions on which each metric is defined: `Report.counts`."""
    defined = {name: [r["ambiguous"] for r in rows if r["metrics"][name] is not None] for name in names}
    return {name: {"all": len(kinds), "multi": sum(map(bool, kinds))} for name, kinds in defined.items()}


def _clarifies(rows: Sequence[Row]) -> bool:
    return any(a["question"] for row in rows if row["error"] is None for a in row["answers"])


def _same_k(rows: Sequence[Row]) -> int | None:
    found = {row["k"] for row in rows if row["error"] is None and row["k"] is not None}
    return found.pop() if len(found) == 1 else None


def _shown(row: Row, *, clarifies: bool, k: int | None) -> Row:
    """A row with its metrics as reported: R@10 for R@k if all used k = 10, no question metrics for a system without questions."""
    if row["error"] is not None:
        return dict(row)
    kept = {
        _label(name, k): None if name in QUESTION_METRICS and not clarifies else value for name, value in row["metrics"].items()
    }
    return row | {"metrics": kept}


def _label(name: str, k: int | None) -> str:
    return name.replace("@k", f"@{k}") if k is not None else name


def _registered(label: str) -> str:
    """The registry's name of a label: R@k for R@10."""
    return label if label in set(METRICS) else f"{label.partition('@')[0]}@k"


def _names(fine: Sequence[Row]) -> list[str]:
    """The metrics that are defined for some question, and always F1 answer."""
    labels = list(fine[0]["metrics"]) if fine else ["F1 answer"]
    return [n for n in labels if n == "F1 answer" or any(r["metrics"][n] is not None for r in fine)]


def _weights(rows: Sequence[Row], name: str) -> list[float] | None:
    return [r["weights"][_registered(name)] for r in rows] if rows and _registered(name) in rows[0]["weights"] else None


def _scores(rows: Sequence[Row], names: Sequence[str]) -> Table:
    if not rows:
        return {name: {"all": None, "multi": None} for name in names}
    plain = [{_registered(n): r["metrics"][n] for n in names} for r in rows]
    weights = {_registered(n): w for n in names if (w := _weights(rows, n)) is not None}
    found = table(plain, [r["ambiguous"] for r in rows], [_registered(n) for n in names], weights)
    return {name: found[_registered(name)] for name in names}


def _intervals(rows: Sequence[Row], names: Sequence[str], seed: int, samples: int) -> dict[str, dict[str, list[float] | None]]:
    found: dict[str, dict[str, list[float] | None]] = {}
    for name in names:
        found[name] = {}
        for scope in ("all", "multi"):
            some = [r for r in rows if scope == "all" or r["ambiguous"]]
            if parts := HARMONIC.get(_registered(name)):
                one, other = ([r["metrics"][part] for r in some] for part in parts)
                ends = harmonic_interval(one, other, samples=samples, seed=seed)
            else:
                ends = interval([r["metrics"][name] for r in some], weights=_weights(some, name), samples=samples, seed=seed)
            found[name][scope] = list(ends) if ends else None
    return found


def _groups(rows: Sequence[Row], field: str, names: Sequence[str]) -> dict[str, Row]:
    """One group per value of the field, sorted; empty if no question has it, "(none)" for those without."""
    if not any(row[field] for row in rows):
        return {}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[field] or "(none)", []).append(row)
    found = {}
    for group in sorted(groups):
        fine = [r for r in groups[group] if r["error"] is None]
        found[group] = {
            "n": len(groups[group]),
            "failed": len(groups[group]) - len(fine),
            "counts": counts_of(fine, names),
            "scores": _scores(fine, names),
            "seconds_median": percentile([r["seconds"] for r in fine], 0.5),
        }
    return found


def percentile(values: Sequence[Value], share: float) -> Value:
    """Linear interpolation between the two nearest ranks of the defined values; None if there is none.

    >>> percentile([1.0, None, 3.0], 0.5), percentile([], 0.5)
    (2.0, None)
    """
    kept = [v for v in values if v is not None]
    return float(np.quantile(kept, share)) if kept else None


def peak_memory_mb() -> Value:
    """The largest resident memory of this process so far, in MB of 10^6 bytes; None if the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if platform.system() == "Darwin" else used * 1024 / 1e6  # bytes there, KiB elsewhere


def peak_gpu_memory_mb() -> Value:
    """The most that torch held on all GPUs together, in MB of 10^6 bytes; None if it used none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return float(sum(torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count()))) / 1e6


def _provenance(info: t.SystemInfo, seed: int, bootstrap: int, questions_digest: str) -> dict[str, Any]:
    return {
        "system": to_plain(trace.to_json(info)),
        "settings": to_plain(trace.to_json(info.settings)),
        "commit": _git("rev-parse", "HEAD"),
        "changed_since_commit": bool(changed) if (changed := _git("status", "--porcelain")) is not None else None,
        "questions_digest": questions_digest,
        "seed": seed,
        "bootstrap": bootstrap,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("torch", "transformers")},
        "faiss": _version("faiss-gpu") or _version("faiss-cpu"),
        **_gpu(),
        "sufficient_from": SUFFICIENT_FROM,
    }


def build_provenance(
    info: t.SystemInfo, seed: int, bootstrap: int, questions: Sequence[t.ReferenceQuestion], about: Row | None = None
) -> Row:
    """The provenance of a report that is not made by `build_report`."""
    more: Row = to_plain(about or {})
    return _provenance(info, seed, bootstrap, digest_of(questions)) | more


def digest_of(questions: Sequence[t.ReferenceQuestion]) -> str:
    """A digest of the questions with references and passages, in order."""
    found = hashlib.sha256()
    for question in questions:
        found.update(json.dumps(trace.to_json(question), sort_keys=True, default=str).encode() + b"\n")
    return found.hexdigest()


def to_plain(value: Any) -> Any:
    """The value as read back from JSON, so that equal settings compare equal; other types become text."""
    return json.loads(json.dumps(value, default=str))


def _git(*arguments: str) -> str | None:
    """The output of git in the repository; None without git, repository or commit."""
    return _run_command(["git", *arguments])


def _run_command(command: Sequence[str]) -> str | None:
    """The output of a command in the repository's folder; None if it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _gpu() -> dict[str, str | None]:
    """The first GPU that torch sees, its driver as NVIDIA's tool says it, and torch's CUDA; None if there is none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {"gpu": None, "driver": None, "cuda": None}
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = _run_command(asked) or ""
    return {"gpu": torch.cuda.get_device_name(0), "driver": driver.partition("\n")[0] or None, "cuda": torch.version.cuda}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def over_repeats(reports: Sequence[Report]) -> Report:
    """The first of several reports of one evaluation, with what the repeats say of chance in the system, which no interval over questions shows.

    `repeats`: their number `n`, and by metric and scope the `mean` and the sample `deviation` of the scores; None where a score is undefined.
    """
    mean: dict[str, dict[str, float | None]] = {}
    deviation: dict[str, dict[str, float | None]] = {}
    for name, scopes in reports[0].scores.items():
        values = {scope: [v for r in reports if (v := r.scores[name][scope]) is not None] for scope in scopes}
        mean[name] = {scope: fmean(v) if v else None for scope, v in values.items()}
        deviation[name] = {scope: stdev(v) if len(v) > 1 else None for scope, v in values.items()}
    return replace(reports[0], repeats={"n": len(reports), "mean": mean, "deviation": deviation})
