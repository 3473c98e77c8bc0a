"""Intervals and comparisons."""

from __future__ import annotations

import random

import pytest

from core.errors import InputError
from core.metrics.significance.bootstrap import Comparison, compare, interval


def test_the_interval_of_a_coin_has_its_known_width() -> None:
    draw = random.Random(1)
    values = [float(draw.random() < 0.5) for _ in range(400)]
    mean = sum(values) / len(values)
    ends = (mean - 1.96 * 0.025, mean + 1.96 * 0.025)
    assert interval(values, samples=2000, seed=3) == pytest.approx(ends, abs=0.01)


def test_weights_draw_the_mean_towards_the_heavy_question() -> None:
    light = interval([0.0] * 50 + [1.0] * 50, samples=500)
    heavy = interval([0.0] * 50 + [1.0] * 50, weights=[1.0] * 50 + [9.0] * 50, samples=500)
    assert light[1] < heavy[0]


def test_a_clear_difference_is_told_from_none() -> None:
    draw = random.Random(2)
    base = [draw.random() for _ in range(80)]
    better = [min(1.0, v + 0.2 + 0.1 * draw.random()) for v in base]
    clear = compare(better, base, samples=500)
    assert clear.difference > 0.1
    assert (clear.p_value, clear.better) == (pytest.approx(2 / 501), 1.0)
    assert compare(base, base[::-1], samples=500).p_value > 0.2
    assert compare(base, base, samples=100).p_value == 1.0


def test_only_questions_where_both_are_defined_count() -> None:
    assert compare([1.0, None], [None, 1.0]) == Comparison(0, None, None, None, None)
    assert compare([1.0, None, 0.5], [0.0, 1.0, 0.5]).n == 2


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        interval([1.0], samples=0)
    with pytest.raises(InputError, match="cannot be paired"):
        compare([1.0], [1.0, 0.0])
