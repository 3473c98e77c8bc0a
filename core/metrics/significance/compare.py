"""Compares two runs over the same questions: each metric's difference with its interval and significance, and the differences
by question.

Sources: paired bootstrap (Koehn 2004; Efron and Tibshirani 1993) and an exchange (permutation) test with add-one p-values (Phipson and Smyth
2010), both in core.metrics.significance.bootstrap and seeded.  Questions are paired by id, text and references; questions that failed or are
undefined in one run are left out of that metric, and `n` is the number of pairs.  The p-values of several metrics are corrected by Holm 1979
("A simple sequentially rejective multiple test procedure"), separately for all and for ambiguous questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.errors import InputError
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES, Comparison, compare
from core.types import SCOPES

QuestionScores = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """`a` and `b`: means over the `n` common questions.  `comparison.difference` is a minus b.  `holm`: the p-value corrected
    for the number of metrics compared together."""

    a: float | None
    b: float | None
    comparison: Comparison
    holm: float | None = None

    def to_json(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, **asdict(self.comparison), "p_holm": self.holm}


@dataclass(frozen=True, slots=True)
class QuestionDifference:
    """A metric of one question in two runs."""

    id: str
    question: str
    ambiguous: bool
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.a - self.b


@dataclass(frozen=True, slots=True)
class RunComparison:
    """`common`: questions in both runs; `unpaired`: questions in only one run."""

    common: int
    unpaired: int
    metrics: dict[str, dict[str, MetricDifference]]  # metric -> "all", "multi"

    def to_json(self) -> dict[str, Any]:
        return {
            "common": self.common,
            "unpaired": self.unpaired,
            "metrics": {m: {s: d.to_json() for s, d in scopes.items()} for m, scopes in self.metrics.items()},
        }


def paired(a: Sequence[QuestionScores], b: Sequence[QuestionScores]) -> list[tuple[QuestionScores, QuestionScores]]:
    """The rows of questions that are in both runs, with equal id, text and references, in the order of the first."""
    other = {row["id"]: row for row in b}
    fields = ("question", "references")
    return [(row, match) for row in a if (match := other.get(row["id"])) and all(row.get(f) == match.get(f) for f in fields)]


def compare_values(
    a: Sequence[float], b: Sequence[float], *, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0
) -> MetricDifference:
    """The comparison of paired values.

    >>> compare_values([1.0, 0.5], [0.5, 0.5], samples=10).comparison.difference
    0.25
    """
    result = compare(a, b, samples=samples, seed=seed)
    return MetricDifference(sum(a) / len(a) if a else None, sum(b) / len(b) if b else None, result)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction of the p-values of one family, in their order; None stays None and is not counted.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p, i) in enumerate(order):
        floor = max(floor, min(1.0, (len(order) - rank) * p))
        out[i] = floor
    return out


def corrected(by_metric: Mapping[str, MetricDifference]) -> dict[str, MetricDifference]:
    """The differences of several metrics, with their p-values corrected together."""
    p_values = holm([d.comparison.p_value for d in by_metric.values()])
    return {name: replace(d, holm=p) for (name, d), p in zip(by_metric.items(), p_values)}


def compare_runs(
    a: Sequence[QuestionScores], b: Sequence[QuestionScores], *, samples: int = BOOTSTRAP_SAMPLES, seed: int = 0
) -> RunComparison:
    """Compares the metrics that both runs have, in the first run's order.  Raises InputError if no question is common."""
    pairs = paired(a, b)
    if not pairs:
        raise InputError(
            "the two runs have no question with the same references in common; compare runs over the same question file"
        )
    others = set(_metrics(b))
    names = [n for n in _metrics(a) if n in others]
    by_scope: dict[str, dict[str, MetricDifference]] = {}
    for scope in SCOPES:
        rows = {name: [d for d in _values(pairs, name) if scope == "all" or d.ambiguous] for name in names}
        by_scope[scope] = corrected(
            {n: compare_values([d.a for d in ds], [d.b for d in ds], samples=samples, seed=seed) for n, ds in rows.items()}
        )
    metrics: dict[str, dict[str, MetricDifference]] = {n: {s: by_scope[s][n] for s in SCOPES} for n in names}
    return RunComparison(len(pairs), len(a) + len(b) - 2 * len(pairs), metrics)


def differences(a: Sequence[QuestionScores], b: Sequence[QuestionScores], metric: str) -> list[QuestionDifference]:
    """One metric's differences by question, the largest first, ties in the order of questions."""
    return sorted(_values(paired(a, b), metric), key=lambda d: -abs(d.difference))


def _metrics(rows: Sequence[QuestionScores]) -> list[str]:
    """The metrics that have a value for some question."""
    return list(dict.fromkeys(n for row in rows for n, value in (row.get("metrics") or {}).items() if value is not None))


def _values(pairs: Sequence[tuple[QuestionScores, QuestionScores]], metric: str) -> list[QuestionDifference]:
    rows = []
    for x, y in pairs:
        a, b = (x.get("metrics") or {}).get(metric), (y.get("metrics") or {}).get(metric)
        if a is not None and b is not None:
            rows.append(QuestionDifference(x["id"], x["question"], bool(x["ambiguous"]), a, b))
    return rows
