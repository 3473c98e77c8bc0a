"""When an answer set is complete: the rules, with and without calibrated probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
from system_fakes import FixedModel, candidates, parts, proposal

from core import types as t
from core.errors import CheckpointError
from core.models.ranking.calibration import Calibration, Platt, log_odds, read_calibration, write_calibration
from core.systems.base.loop import LoopEnd, LoopSystem
from core.systems.base.options import Options
from core.systems.base.selection import CalibrationKey, OnePassSelection, choose, distinct
from core.systems.base.system import answer

SAME = Platt({"odds": 1.0}, 0.0)  # leaves a probability as it is
SURE = Platt({"odds": 1.0}, 4.0)  # the model is far too careful
PASSAGES = [t.Passage("a", "People", "Anna, Bert, Carl and Dora.")]


def looped(end: LoopEnd) -> t.Prediction:
    """Two steps at which [EOI] is likelier than a candidate that is often right, then one without a hope."""
    model = FixedModel(proposal(0.2, Anna=0.7), proposal(0.45, Bert=0.4, Carl=0.1), proposal(0.95, Dora=0.02))
    return answer(LoopSystem("x", parts(PASSAGES), Options(clarify=False), lambda _: model, end=end), t.Question("who"))


def shown(prediction: t.Prediction) -> dict[str, float]:
    return {a.text: round(a.probability, 3) for a in prediction.answers}


def test_the_rules_of_a_loop_differ_where_eoi_is_likelier_than_a_candidate_that_is_often_right() -> None:
    assert shown(looped(LoopEnd())) == {"Anna": 0.7}
    assert shown(looped(LoopEnd("threshold", 0.5))) == {"Anna": 0.7, "Bert": 0.4}


def test_a_loop_shows_calibrated_probabilities_and_compares_the_models_own() -> None:
    prediction = looped(LoopEnd(calibration=Calibration(SURE, SURE)))
    assert shown(prediction) == {"Anna": round(SURE({"odds": log_odds(0.7)}), 3)}  # ends where it does without calibration
    assert prediction.steps[1].eoi_probability == pytest.approx(SURE({"odds": log_odds(0.45)}))
    assert prediction.steps[1].candidates[0].probability > 0.9
    # a threshold is one of the calibrated probability: 0.2 is far above a half once calibrated
    assert shown(looped(LoopEnd("threshold", 0.5, Calibration(SAME, SURE)))) == {}


def test_of_two_readings_of_one_answer_the_likelier_counts() -> None:
    directors = candidates(Robert_Wise=0.6, director_Robert_Wise=0.3, Wise=0.2, Jerome_Robbins=0.1)
    assert [c.text for c in distinct(directors)] == ["Robert Wise", "Jerome Robbins"]
    assert [c.text for c in distinct(directors, ["Jerome Robbins"])] == ["Robert Wise"]


def test_what_a_system_keeps_that_reads_once() -> None:
    people = candidates(Anna=0.3, Bert=0.2, Bert_Brown=0.1, Carl=0.05, Dora=0.001)
    question = t.Question("who", pinned=("Emil",), banned=("anna",))
    for maximum, expected in ((8, ["Emil", "Bert", "Carl"]), (2, ["Emil", "Bert"]), (1, ["Emil"])):
        assert [c.text for c in choose(people, question, 0.04, maximum)] == expected
    selected, calibrated = OnePassSelection(0.04, Calibration(SURE)).keep(people, question, 8)
    assert [c.text for c in selected] == ["Emil", "Bert", "Carl"]  # the threshold is one of the system's own scale
    assert [c.text for c in calibrated] == [c.text for c in people]
    assert calibrated[0].probability == pytest.approx(SURE({"odds": log_odds(0.3)}))


def test_a_calibration_belongs_to_the_weights_that_it_was_fitted_with(tmp_path: Path) -> None:
    calibration = Calibration(SURE, SAME, "12 questions", "digest")
    write_calibration(tmp_path, "reading dpr", calibration)
    write_calibration(tmp_path, "jpr reader", Calibration(SAME, None, "12 questions", "digest"))
    assert read_calibration(tmp_path, "reading dpr", "digest") == calibration
    assert read_calibration(tmp_path, "reading dpr", "other weights") is None
    (tmp_path / "config.json").write_text("{}")  # a folder of weights
    key = CalibrationKey("reading dpr", "reader", "digest")
    assert key.find(str(tmp_path), "on") == calibration
    assert key.find(str(tmp_path), "off") is None
    assert key.find("no such checkpoint", "on") is None


@pytest.mark.parametrize("wrong", ["{", "[]", '{"a": 1}', '{"a": {"answer": {"weights": {"odds": 1}, "bias": 0}}}'])
def test_a_damaged_file_says_what_to_do(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "calibration.json").write_text(wrong)
    with pytest.raises(CheckpointError, match="core train calibration"):
        read_calibration(tmp_path, "a", "digest")


@pytest.mark.parametrize("wrong", [({"odds": float("nan")}, 0.0), ({"odds": -1.0}, 0.0), ({"odds": 1.0, "mood": 1.0}, 0.0)])
def test_a_calibration_that_makes_no_sense_is_refused(wrong: tuple[dict[str, float], float]) -> None:
    with pytest.raises(CheckpointError):
        Platt(*wrong)
