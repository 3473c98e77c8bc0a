"""Intervals, and comparing two runs: pairs, differences, significance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from core.errors import InputError
from core.metrics.significance.bootstrap import Comparison, compare, interval
from core.metrics.significance.compare import compare_runs, compare_values, differences, holm


def row(name: str, value: float | None, ambiguous: bool = True, **more: Any) -> dict[str, Any]:
    return {"id": name, "question": f"{name}?", "ambiguous": ambiguous, "error": None, "metrics": {"F1 answer": value}, **more}


A = [row("a", 1.0), row("b", 0.5, False), row("c", 0.0), row("d", 1.0)]
B = [row("c", 1.0), row("b", 0.25, False), row("a", 0.75), {**row("d", None), "error": "boom", "metrics": {}}, row("e", 1.0)]


def test_the_comparison_counts_what_both_have() -> None:
    result = compare_runs(A, B, samples=200)
    assert (result.common, result.unpaired) == (4, 1)
    full, multi = result.metrics["F1 answer"]["all"], result.metrics["F1 answer"]["multi"]
    assert (full.a, full.b) == (0.5, pytest.approx(2 / 3))
    assert (full.comparison.n, full.comparison.difference) == (3, pytest.approx(-1 / 6))
    assert (multi.comparison.n, multi.comparison.difference) == (2, pytest.approx(-0.375))
    assert result.to_json()["metrics"]["F1 answer"]["all"]["n"] == 3


def test_p_values_are_corrected_for_the_number_of_metrics() -> None:
    alone = compare_runs(A, B, samples=200).metrics["F1 answer"]["all"]
    twice = ([{**r, "metrics": r["metrics"] | {"precision": r["metrics"].get("F1 answer")}} for r in rows] for rows in (A, B))
    among = compare_runs(*twice, samples=200).metrics["F1 answer"]["all"]
    assert among.comparison.p_value == alone.comparison.p_value == alone.holm
    assert among.to_json()["p_holm"] == among.holm == min(1.0, 2 * (among.comparison.p_value or 0.0))
    assert holm([None, 0.5, 0.9]) == [None, 1.0, 1.0]


def test_the_largest_difference_comes_first() -> None:
    assert [(d.id, d.difference) for d in differences(A, B, "F1 answer")] == [("c", -1.0), ("a", 0.25), ("b", 0.25)]


def test_runs_without_a_common_question() -> None:
    changed = [row("z", 1.0), row("a", 1.0, question="Another?"), row("b", 1.0, references=[[["another answer"]]])]
    with pytest.raises(InputError, match="in common"):
        compare_runs(A, changed)


def test_weights_draw_the_mean_towards_the_heavy_question() -> None:
    light = interval([0.0] * 50 + [1.0] * 50, samples=500)
    heavy = interval([0.0] * 50 + [1.0] * 50, weights=[1.0] * 50 + [9.0] * 50, samples=500)
    assert light[1] < heavy[0]


def test_only_questions_where_both_are_defined_count() -> None:
    assert compare([1.0, None], [None, 1.0]) == Comparison(0, None, None, None, None)
    assert compare([1.0, None, 0.5], [0.0, 1.0, 0.5]).n == 2


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        interval([1.0], samples=0)
    with pytest.raises(InputError, match="the seed is -1"):
        interval([1.0, 0.0], seed=-1)
    with pytest.raises(InputError, match="cannot be paired"):
        compare([1.0], [1.0, 0.0])


def test_interval_and_p_value_agree_with_scipy() -> None:
    draw = np.random.default_rng(1)
    a = draw.uniform(size=120)
    b = np.clip(a - draw.normal(0.05, 0.15, size=120), 0, 1)
    ours = compare_values(a.tolist(), b.tolist(), samples=4000).comparison
    d = a - b
    theirs = stats.bootstrap((d,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(2))
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval), abs=0.004)
    assert ours.better == pytest.approx(np.mean(theirs.bootstrap_distribution > 0), abs=0.01)
    test = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=4000, rng=np.random.default_rng(3))
    assert ours.p_value == pytest.approx(test.pvalue, abs=0.01)
