"""F1 answer and its kin."""

from __future__ import annotations

import pytest

from core.metrics import METRICS, metric
from core.metrics.answers import f1, matching
from core.metrics.base import Example
from core.types import Annotation, QAPair


def annotation(*answers: list[str]) -> Annotation:
    return Annotation("single" if len(answers) == 1 else "multiple", tuple(QAPair("q", tuple(a)) for a in answers))


TWO = annotation(["Rome", "Roma"], ["Oslo"])


@pytest.mark.parametrize(
    ("predictions", "annotations", "values"),
    [
        (["roma", "Bonn", "Bern"], [TWO], {"precision": 1 / 3, "recall": 1 / 2, "F1 answer": 0.4, "exact set": 0.0}),
        (["roma", "Bonn", "Bern"], [TWO], {"answers": 3.0, "reference answers": 2.0}),
        (["Oslo", "Rome"], [TWO], {"exact set": 1.0}),
        (["Rome"], [TWO, annotation(["Rome"])], {"F1 answer": 1.0, "reference answers": 1.5}),  # the best annotation counts
    ],
)
def test_worked_values(predictions: list[str], annotations: list[Annotation], values: dict[str, float]) -> None:
    example = Example("Which city?", tuple(annotations), tuple(predictions))
    assert {name: metric(name)(example) for name in values} == pytest.approx(values)


def test_two_aliases_of_one_answer_are_one_hit_and_one_wrong_prediction() -> None:
    assert f1([["Rome", "Roma"], ["Oslo"]], ["Rome", "Roma"]) == pytest.approx(0.5)


def test_the_matching_walks_in_order_and_is_no_maximum_matching() -> None:
    # The first reference takes the prediction that the second one needed, as in the authors' script.
    assert matching([["x", "y"], ["x"]], ["x", "y"]) == [(0, 0)]


def test_nothing_said_scores_0_but_has_no_precision() -> None:
    silent = Example("Which city?", (TWO,), ())
    assert [metric(name)(silent) for name in ("F1 answer", "recall", "precision")] == [0.0, 0.0, None]


def test_a_question_without_reference_answers_is_undefined() -> None:
    example = Example("q", (Annotation("none"),), ("Rome",), ("q",), None, ("Rome",), 1, ())
    for name in ("F1 answer", "precision", "recall", "exact set", "reference answers", "R@k", "RAMDocs", "F1 edit-f1"):
        assert metric(name)(example) is None


def test_every_registered_metric_is_there() -> None:
    assert [name for name in METRICS if not callable(metric(name))] == []
