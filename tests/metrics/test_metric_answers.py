"""F1 answer and its kin."""

from __future__ import annotations

import pytest

from core.metrics import METRICS, metric
from core.metrics.answers import f1, matching
from core.metrics.base import Example
from core.types import Annotation, QAPair


def annotation(*answers: list[str]) -> Annotation:
    return Annotation("single" if len(answers) == 1 else "multiple", tuple(QAPair("q", tuple(a)) for a in answers))


def value(name: str, example: Example) -> float | None:
    return metric(name)(example)


def example(predictions: list[str], *annotations: Annotation) -> Example:
    return Example("Which city?", annotations, tuple(predictions))


def test_worked_values() -> None:
    two = annotation(["Rome", "Roma"], ["Oslo"])
    said = example(["roma", "Bonn", "Bern"], two)
    assert value("precision", said) == pytest.approx(1 / 3)
    assert value("recall", said) == 0.5
    assert value("F1 answer", said) == pytest.approx(0.4)
    assert value("exact set", said) == 0.0
    assert value("exact set", example(["Oslo", "Rome"], two)) == 1.0
    assert value("answers", said) == 3.0
    assert value("reference answers", said) == 2.0


def test_two_aliases_of_one_answer_are_one_hit_and_one_wrong_prediction() -> None:
    assert f1([["Rome", "Roma"], ["Oslo"]], ["Rome", "Roma"]) == pytest.approx(0.5)


def test_the_matching_walks_in_order_and_is_no_maximum_matching() -> None:
    # The first reference takes the prediction that the second one needed, as in the authors' script.
    assert matching([["x", "y"], ["x"]], ["x", "y"]) == [(0, 0)]


def test_the_best_annotation_counts() -> None:
    assert value("F1 answer", example(["Rome"], annotation(["Rome"], ["Oslo"]), annotation(["Rome"]))) == 1.0
    assert value("reference answers", example(["Rome"], annotation(["Rome"], ["Oslo"]), annotation(["Rome"]))) == 1.5


def test_nothing_said_scores_0_but_has_no_precision() -> None:
    silent = example([], annotation(["Rome"]))
    assert (value("F1 answer", silent), value("recall", silent), value("precision", silent)) == (0.0, 0.0, None)


def test_a_question_without_reference_answers_is_undefined() -> None:
    for name in ("F1 answer", "precision", "recall", "exact set", "reference answers", "R@k", "RAMDocs", "F1 edit-f1"):
        assert value(name, Example("q", (Annotation("none"),), ("Rome",), ("q",), None, ("Rome",), 1, ())) is None


def test_every_registered_metric_is_there() -> None:
    assert [name for name in METRICS if not callable(metric(name))] == []
