"""When an answer set is whole: the rules, with and without calibrated probabilities."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_iterative import Fixed, parts, proposal

from core import types as t
from core.errors import CheckpointError, InputError
from core.models.ranking.calibration import Calibration, Platt, log_odds, read_calibration, write_calibration
from core.systems.base.base import Options, answer
from core.systems.base.candidates import choose, selection
from core.systems.base.iterative import AmbigPrompt
from core.systems.base.stopping import LoopEnd, Place, Selection, distinct

SAME = Platt({"odds": 1.0}, 0.0)  # leaves a probability as it is
SURE = Platt({"odds": 1.0}, 4.0)  # the model is far too careful


def candidates(**found: float) -> list[t.Candidate]:
    return [t.Candidate(name.replace("_", " "), p) for name, p in found.items()]


def loop(model: t.AnsweringModel, end: LoopEnd) -> t.Prediction:
    return answer(AmbigPrompt("x", parts(), Options(clarify=False), model, None, ("", ""), end=end), t.Question("who"))


def said(prediction: t.Prediction) -> dict[str, float]:
    return {a.text: round(a.probability, 3) for a in prediction.answers}


def steps() -> Fixed:
    """Two steps at which [EOI] is likelier than a candidate that is often right, then one without a hope."""
    return Fixed(proposal(0.2, Anna=0.7), proposal(0.45, Bert=0.4, Carl=0.1), proposal(0.95, Dora=0.02))


def test_the_rules_of_a_loop_differ_where_eoi_is_likelier_than_a_candidate_that_is_often_right() -> None:
    calibration = Calibration(SURE, SAME)
    assert said(loop(steps(), LoopEnd())) == {"Anna": 0.7}
    assert said(loop(steps(), LoopEnd("threshold", 0.5))) == {"Anna": 0.7, "Bert": 0.4}
    assert list(said(loop(steps(), LoopEnd("expected-f1", calibration=calibration)))) == ["Anna", "Bert", "Dora"]
    hopeless = Calibration(Platt({"odds": 1.0, "later": -9.0}, 0.0), SAME)
    assert list(said(loop(steps(), LoopEnd("expected-f1", calibration=hopeless)))) == ["Anna"]


def test_a_loop_says_calibrated_probabilities_and_compares_the_models_own() -> None:
    prediction = loop(steps(), LoopEnd(calibration=Calibration(SURE, SURE)))
    assert said(prediction) == {"Anna": round(SURE({"odds": log_odds(0.7)}), 3)}  # ends where it does without calibration
    assert prediction.steps[1].eoi_probability == pytest.approx(SURE({"odds": log_odds(0.45)}))
    assert prediction.steps[1].candidates[0].probability > 0.9
    assert "[EOI] is likelier" in prediction.steps[1].stopped_because


def test_a_threshold_is_one_of_the_calibrated_probability_that_nothing_is_left() -> None:
    found = loop(steps(), LoopEnd("threshold", 0.5, Calibration(SAME, SURE)))
    assert said(found) == {}  # 0.2 is far above a half once calibrated
    assert found.steps[0].stopped_because == "P([EOI]) exceeds the threshold 0.5"


def test_where_nothing_is_likely_to_be_right_one_answer_is_given_at_any_rate() -> None:
    found = loop(steps(), LoopEnd("expected-f1", calibration=Calibration(Platt({"odds": 1.0, "later": -9.0}, -2.0), SAME)))
    assert [a.text for a in found.answers] == ["Anna"]
    assert found.steps[-1].stopped_because == "a further answer would lower the expected F1"


def test_a_stopping_threshold_chooses_its_rule_and_does_not_go_with_the_expected_f1() -> None:
    assert LoopEnd.chosen(0.3) == LoopEnd("threshold", 0.3)
    assert LoopEnd.chosen(None, "expected-f1").rule == "expected-f1"
    with pytest.raises(InputError, match="remove one of them"):
        LoopEnd.chosen(0.3, "expected-f1")


def test_of_two_readings_of_one_answer_the_likelier_counts() -> None:
    found = candidates(Robert_Wise=0.6, director_Robert_Wise=0.3, Wise=0.2, Jerome_Robbins=0.1)
    assert [c.text for c in distinct(found)] == ["Robert Wise", "Jerome Robbins"]
    assert [c.text for c in distinct(found, ["Jerome Robbins"])] == ["Robert Wise"]


def test_what_a_system_keeps_that_reads_once() -> None:
    found = candidates(Anna=0.3, Bert=0.2, Bert_Brown=0.1, Carl=0.05, Dora=0.001)
    question = t.Question("who", pinned=("Emil",), banned=("anna",))
    assert [c.text for c in choose(found, question, 0.04, 8)] == ["Emil", "Bert", "Carl"]
    assert [c.text for c in choose(found, question, 0.04, 2)] == ["Emil", "Bert"]
    assert [c.text for c in choose(found, question, 0.04, 1)] == ["Emil"]
    kept, shown = Selection(0.9, "expected-f1", Calibration(SURE)).keep(found, question, 8)
    assert [c.text for c in kept] == ["Emil", "Bert", "Carl"]  # Dora's 0.001 is 5% calibrated
    assert [c.text for c in shown] == [c.text for c in found]
    assert shown[0].probability == pytest.approx(SURE({"odds": log_odds(0.3)}))
    threshold, _ = Selection(0.04, "threshold", Calibration(SURE)).keep(found, question, 8)
    assert [c.text for c in threshold] == ["Emil", "Bert", "Carl"]  # the threshold is one of the system's own scale
    assert threshold[1].probability == pytest.approx(SURE({"odds": log_odds(0.2)}))


def test_a_calibration_belongs_to_the_weights_that_it_was_fitted_with(tmp_path: Path) -> None:
    calibration = Calibration(SURE, SAME, "12 questions", "digest", SURE)
    write_calibration(tmp_path, "reading dpr", calibration)
    write_calibration(tmp_path, "jpr reader", Calibration(SAME, None, "12 questions", "digest"))
    assert read_calibration(tmp_path, "reading dpr", "digest") == calibration
    assert read_calibration(tmp_path, "reading dpr", "other weights") is None
    assert read_calibration(tmp_path, "rectify", "digest") is None
    (tmp_path / "config.json").write_text("{}")  # a folder of weights
    place = Place("reading dpr", "reader", "digest")
    assert place.find(str(tmp_path), "expected-f1", "on") == calibration
    assert place.find(str(tmp_path), "threshold", "off") is None
    with pytest.raises(InputError, match="core train calibration"):
        place.find(str(tmp_path), "expected-f1", "off")
    with pytest.raises(InputError, match="core train calibration"):
        selection({"stop": "expected-f1", "calibration": "on"}, "no such checkpoint", place, 0.5)


@pytest.mark.parametrize(
    "wrong",
    ["{", "[]", '{"a": 1}', '{"a": {"answer": {"weights": {"odds": 1}, "bias": 0}}}'],
)
def test_a_damaged_file_says_what_to_do(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "calibration.json").write_text(wrong)
    with pytest.raises(CheckpointError, match="core train calibration"):
        read_calibration(tmp_path, "a", "digest")


@pytest.mark.parametrize("wrong", [({"odds": float("nan")}, 0.0), ({"odds": -1.0}, 0.0), ({"odds": 1.0, "mood": 1.0}, 0.0)])
def test_a_calibration_that_makes_no_sense_is_refused(wrong: tuple[dict[str, float], float]) -> None:
    with pytest.raises(CheckpointError, match="fit it again"):
        Platt(*wrong)
