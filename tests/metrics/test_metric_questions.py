"""BLEU and EDIT-F1 of disambiguated questions."""

from __future__ import annotations

import pytest

from core.metrics import metric
from core.metrics.base import Example
from core.metrics.questions import bleu, edit, edit_f1
from core.types import Annotation, QAPair


@pytest.mark.parametrize(
    ("predicted", "references", "n", "value"),
    [
        # 4 words against 3 and 5: equally close, the shorter counts, so there is no penalty
        ("who won in 2010", ["who won race", "who won race in 2010"], 1, 1.0),
        ("won won won", ["won race won"], 1, 2 / 3),  # a word counts as often as in one reference
        # no 4-gram is possible: (0 + 1e-15) / (0 + 1e-9) = 1e-6, and its fourth root remains
        ("who won race", ["who won race"], 4, (1e-6) ** (1 / 4)),
        ("cup", ["race"], 1, 1e-15),
        ("", ["race"], 1, 0.0),
    ],
)
def test_bleu_as_in_coco_caption(predicted: str, references: list[str], n: int, value: float) -> None:
    assert bleu(predicted, references, n) == pytest.approx(value, rel=1e-5, abs=1e-20)


def test_kept_words_do_not_count_in_the_edit() -> None:
    assert edit("who won won", "who won") == {("-", "won"): 1}
    assert not edit("won who", "who won")
    # predicted +in +2010, reference +in +2014: one of two on both sides
    assert edit_f1("who won in 2010", ["who won in 2014", "who lost"], "who won") == 0.5


def test_pairs_are_taken_from_the_most_similar_and_each_side_once() -> None:
    annotation = Annotation(
        "multiple", (QAPair("Who won in 2010?", ("Spain",)), QAPair("Who won the cup in 1964?|Who won in 1964?", ("Spain",)))
    )
    example = Example("Who won?", (annotation,), ("Spain", "spain"), ("Who won in 1964?", "Who won in 2010?"))
    assert metric("F1 edit-f1")(example) == 1.0
    once = Example("Who won?", (annotation,), ("Spain",), ("Who won in 1964?",))
    assert metric("F1 edit-f1")(once) == pytest.approx(2 / 3)


def test_a_single_answer_annotation_counts_with_f1_answer() -> None:
    single = Annotation("single", (QAPair("Who won?", ("Spain",)),))
    example = Example("Who won?", (single,), ("Spain", "Italy"), ("a", "b"))
    assert metric("F1 bleu4")(example) == pytest.approx(2 / 3)


def test_without_questions_on_either_side_the_metric_is_undefined() -> None:
    asked = Annotation("multiple", (QAPair("Who won in 2010?", ("Spain",)), QAPair("Who won in 2014?", ("Germany",))))
    silent = Annotation("multiple", (QAPair("", ("Spain",)), QAPair("", ("Germany",))))
    for name in ("F1 bleu1", "F1 edit-f1"):
        assert metric(name)(Example("Who won?", (asked,), ("Spain",))) is None
        assert metric(name)(Example("Who won?", (silent,), ("Spain",), ("Who won in 2010?",))) is None
