"""Reliability: bins, the expected calibration error, and what of a question is judged."""

from __future__ import annotations

import random

from core import types as t
from core.metrics import metric, weights_of
from core.metrics.base import Example
from core.metrics.calibration import by_chance, ends_of, judged, reliability

TWO = (t.Annotation("multiple", (t.QAPair("", ("Rome", "Roma")), t.QAPair("", ("Oslo",)))),)


def example(**probabilities: float | None) -> Example:
    return Example("q", TWO, tuple(probabilities), probabilities=tuple(probabilities.values()))


def test_each_answer_is_judged_by_the_references_and_an_answer_said_twice_is_right_once() -> None:
    assert judged(Example("q", TWO, ("Roma", "Bern", "Rome"), probabilities=(0.9, 0.4, None))) == [(0.9, True), (0.4, False)]
    assert judged(Example("q", TWO, ("Rome",))) == []
    assert judged(Example("q", (), ("Rome",), probabilities=(0.5,))) == []


def test_the_brier_score_counts_answers_and_not_questions() -> None:
    examples = (example(Rome=1.0, Bern=0.0), example(Rome=0.5, Bern=0.5), example())
    assert [metric("Brier")(one) for one in examples] == [0.0, 0.25, None]
    assert weights_of(example(Rome=0.5, Bern=None))["Brier"] == 1.0


def test_eoi_is_right_where_every_reference_was_given() -> None:
    def step(eoi: float, *previous: str) -> t.Step:
        return t.Step(len(previous) + 1, previous, "", (), None, eoi, 0.0)

    example = Example("q", TWO, ("Rome", "Oslo"), probabilities=(0.5, 0.5))
    judgments = ends_of(example, [step(0.1), step(0.2, "Roma"), step(0.7, "Roma", "Oslo"), step(0.9, "Roma", "Oslo", "Bern")])
    assert judgments == [(0.1, False), (0.2, False), (0.7, True), (0.9, True)]
    assert ends_of(example, [step(0.0), step(0.0, "Rome")]) == []  # it never says [EOI]


def test_forecasts_that_come_true_as_often_as_they_say_are_below_the_error_by_chance_in_95_of_100_cases() -> None:
    draw = random.Random(1)
    probabilities = [draw.random() for _ in range(300)]
    chance = by_chance([(b.n, b.said) for b in reliability([(p, True) for p in probabilities]).bins])
    errors = [reliability([(p, draw.random() < p) for p in probabilities]).error or 0.0 for _ in range(400)]
    assert 0.02 < chance < 0.12
    assert 0.92 <= sum(e <= chance for e in errors) / len(errors) <= 0.99
