"""Fits near the weights that a reranker has."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from core.errors import InputError
from core.models.ranking.calibration import Calibration, Platt
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Weights
from core.training.calibration import RecordedRun, RecordedStep
from core.training.data.examples import MultiExample
from core.training.judgments import calibrate_near, fit_near, near
from core.training.logit import Labelled, Logit, parameters_of
from core.training.reranker import labelled
from core.types import Candidate

FIRST, SECOND = FEATURES[:2]


def present(**given: float) -> Weights:
    part = {name: given.get(name, 0.0) for name in FEATURES}
    return Weights(part, dict.fromkeys(FEATURES, 0.0), dict.fromkeys(FEATURES, 1.0), 0.0, "before")


class Made:
    """Questions of one step with four candidates: the right one has the largest first feature, the loudest one the largest second."""

    def __init__(self, n: int, chance: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.examples = [MultiExample(f"Question {i}", (), (("right",),), "made") for i in range(n)]
        self.x = [np.where(np.isin(FEATURES, (FIRST, SECOND)), rng.normal(size=(4, len(FEATURES))), 0.0) for _ in range(n)]
        self.right = [np.arange(4) == (rng.integers(4) if chance else x[:, 0].argmax()) for x in self.x]

    def log(self, _: str) -> None:
        return None

    def f1(self, ids: Sequence[int], weights: Weights | None) -> dict[int, float]:
        return {i: float(self.right[i][weights.scores(self.x[i]).argmax()]) for i in ids}

    def steps(self, ids: Sequence[int]) -> list[Labelled]:
        return [Labelled(self.x[i], self.right[i], False) for i in ids]


def test_few_questions_turn_weights_that_trust_the_wrong_thing() -> None:
    found = fit_near(Made(60), present(**{SECOND: 1.0}), "after")
    assert found.kept
    assert found.after > found.before + 0.3
    assert found.weights.weights[FIRST] > 0.5
    assert found.weights.fitted_on == "after"
    assert not math.isinf(found.pull)


def test_what_does_not_help_held_out_questions_is_not_kept() -> None:
    before = present(**{FIRST: 1.0})
    found = fit_near(Made(30, chance=True), before)
    if not found.kept:
        assert found.weights == before
    perfect = fit_near(Made(30), before)
    assert (perfect.before, perfect.kept, perfect.weights) == (1.0, False, before)
    assert "Infinity" not in json.dumps(replace(perfect, pull=math.inf).to_json())


def test_the_pull_keeps_weights_where_they_are() -> None:
    runs, before = Made(30), present(**{SECOND: 1.0})
    steps = Logit.of(runs.steps(range(30)), before)
    moved = [np.abs(near(steps, before, pull) - parameters_of(before)).sum() for pull in (1, 30, 1e6)]
    assert moved[0] > moved[1] > moved[2]
    assert moved[2] < 0.01


def test_too_few_judged_questions_are_said() -> None:
    with pytest.raises(InputError, match="9 judged questions have a correct answer; a fit needs 10"):
        fit_near(Made(9), present())


def test_where_only_wrong_answers_are_known_nothing_else_is_wrong() -> None:
    example = MultiExample("Who?", (), (), "made", ("Otto",), {"negatives_only": True})
    found = labelled(example, (), [Candidate("Otto", 0.5), Candidate("Anna", 0.2)], np.zeros((2, len(FEATURES))))
    assert (found.right.tolist(), found.end) == ([False, True], True)
    known = MultiExample("Who?", (), (("Anna",),), "made", ("Otto",))
    found = labelled(known, ("Anna",), [Candidate("Otto", 0.5)], np.zeros((1, len(FEATURES))))
    assert (found.right.tolist(), found.end) == ([False], True)


def run(number: int, probability: float, right: bool) -> RecordedRun:
    """One step with one candidate; where it is right, it is all that there is."""
    step = RecordedStep((("Anna", probability),), 1 - probability, "Anna")
    last = RecordedStep((), 0.9, None)
    return RecordedRun(str(number), "Who?", "made", ((("Anna" if right else "Bert",),),), (step, last))


def test_judged_questions_turn_a_calibration_that_is_too_sure() -> None:
    sure = Calibration(Platt({"odds": 1.0}, 3.0), Platt({"odds": 1.0}, -3.0), "before", "old")
    runs = [run(i, 0.5 + 0.05 * (i % 5), i % 3 == 0) for i in range(60)]
    found = calibrate_near(runs, sure, "after", "new")
    assert found.kept
    assert found.after < found.before - 0.1
    assert (found.calibration.fitted_on, found.calibration.weights) == ("after", "new")
    assert found.calibration.answer.bias < sure.answer.bias


def test_a_calibration_that_cannot_be_bettered_stays_for_the_new_weights() -> None:
    fine = Calibration(Platt({"odds": 1.0}, 0.0), Platt({"odds": 1.0}, 0.0), "before", "old")
    one_kind = calibrate_near([run(i, 0.6, True) for i in range(4)], fine, "after", "new")
    assert not one_kind.kept
    assert one_kind.calibration == replace(fine, weights="new")
    chance = calibrate_near([run(i, 0.5, i % 2 == 0) for i in range(10)], fine, "after", "new")
    assert chance.kept or chance.calibration == replace(fine, weights="new")
