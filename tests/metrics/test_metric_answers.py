"""F1 answer and its kin, R@k, MRecall@k, RAMDocs' measure and the share of clarified answers."""

from __future__ import annotations

from typing import Any

import pytest

from core.metrics import metric, weights_of
from core.metrics.answers import matching
from core.metrics.base import Example, mean
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


def test_the_matching_walks_in_order_and_is_no_maximum_matching() -> None:
    # The first reference takes the prediction that the second one needed, as in the authors' script.
    assert matching([["x", "y"], ["x"]], ["x", "y"]) == [(0, 0)]


def test_a_question_without_reference_answers_is_undefined() -> None:
    example = Example("q", (Annotation("none"),), ("Rome",), ("q",), None, ("Rome",), 1, ())
    for name in ("F1 answer", "precision", "recall", "exact set", "reference answers", "R@k", "RAMDocs", "F1 edit-f1"):
        assert metric(name)(example) is None


CITIES = annotation(["Rome", "Roma"], ["Oslo"], ["New York"])
CAPITALS = annotation(["東京"], ["กรุงเทพ", "กรุงเทพมหานคร"])


@pytest.mark.parametrize(
    ("reference", "passages", "k", "recall", "mrecall"),
    [
        pytest.param(CITIES, ("Roma is old.", "Oslo is cold.", "x", "In New  York, today"), 4, 1.0, 1.0, id="all"),
        pytest.param(CITIES, ("Roma is old. Oslo is cold.", "x"), 2, 1.0, 1.0, id="k = 2 of n = 3 answers"),
        pytest.param(CITIES, ("Roma is old.", "x"), 2, 1.0, 0.0, id="one"),
        pytest.param(CITIES, ("x", "Rome"), 1, 0.0, 0.0, id="only the top k count"),
        pytest.param(CITIES, ("Romeo of York",), 1, 0.0, 0.0, id="words are whole"),
        pytest.param(CITIES, ("Rome Oslo",), 10, 1.0, 0.0, id="fewer passages than k do not lower the bar"),
        pytest.param(CAPITALS, ("日本の首都は東京です。", "กรุงเทพเป็นเมืองหลวง"), 2, 1.0, 1.0, id="scripts without spaces"),
        pytest.param(CAPITALS, ("京都は古い都です。", "東の京"), 2, 0.0, 0.0, id="other words in such scripts"),
        pytest.param(CITIES, None, None, None, None, id="nothing retrieved is undefined"),
    ],
)
def test_r_at_k_wants_one_answer_and_mrecall_all_or_k(
    reference: Annotation, passages: Any, k: int | None, recall: float | None, mrecall: float | None
) -> None:
    example = Example("Which city?", (reference,), (), passages=passages, k=k)
    assert (metric("R@k")(example), metric("MRecall@k")(example)) == (recall, mrecall)


@pytest.mark.parametrize(
    ("answers", "wrong", "exact", "in_text"),
    [
        (("rome", "The OSLO!"), ("Bonn",), 1.0, 1.0),
        (("Rome", "Oslo", "bonn"), ("Bonn",), 0.0, 0.0),
        (("Rome",), ("Bonn",), 0.0, 0.0),
        (("Rome", "Oslo", "Kiel"), (), 1.0, 1.0),  # neither gold nor listed as wrong
        (("Rome", "Oslo"), None, None, None),  # a set without such a list
        (("Trastevere, Rome", "the OSLO!"), ("Bonn",), 0.0, 1.0),
        (("Rome", "Oslo", "near Bonn"), ("Bonn",), 1.0, 0.0),
        (("Romeo", "Oslo"), (), 0.0, 0.0),  # whole words
    ],
)
def test_ramdocs_wants_all_gold_and_no_wrong_answer_as_they_are_or_in_longer_ones(
    answers: tuple[str, ...], wrong: tuple[str, ...] | None, exact: float | None, in_text: float | None
) -> None:
    example = Example("q", (TWO,), answers, wrong_answers=wrong)
    assert (metric("RAMDocs")(example), metric("RAMDocs in text")(example)) == (exact, in_text)


def test_the_clarified_share_is_of_right_answers() -> None:
    examples = [
        Example("q", (TWO,), ("Bonn", "Rome", "Oslo"), passed=(True, True, False)),
        Example("q", (TWO,), ("Rome",), passed=(True,)),
        Example("q", (TWO,), ("Bonn",), passed=(True,)),  # none is right
        Example("q", (TWO,), ("Rome",), passed=(None,)),  # not clarified
    ]
    values = [metric("clarified")(example) for example in examples]
    assert values == [0.5, 1.0, None, None]
    # two of three right answers, not the mean of the questions' shares
    assert mean(values, [weights_of(example)["clarified"] for example in examples]) == 2 / 3
