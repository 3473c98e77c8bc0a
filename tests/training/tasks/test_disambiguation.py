"""Question disambiguation as sequence to sequence: what a training example holds, what is written, and a short training."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import word_tokenizer

from core.errors import CheckpointError, InputError
from core.models.seq2seq.fid import FidAnswerer, make_fid, save_fid
from core.models.seq2seq.network import FidConfig
from core.models.seq2seq.rewriter import Seq2SeqRewriter, load_rewriter, truecase
from core.training.data.chunks import batches
from core.training.data.examples import MultiExample
from core.training.disambiguation import DisambiguationTask, rewriting_edit_f1, rewriting_item
from core.types import Passage

PASSAGES = (("north", "the ball of the town is red"), ("south", "the boat is blue"), ("east", "a car"))
EXAMPLE = MultiExample(
    "which colour is it ?",
    PASSAGES,
    (("red",), ("blue", "azure")),
    "made",
    extra={"questions": ["which colour is the ball ? | which colour ?", "which colour is the boat ?"]},
)


@pytest.fixture
def parts(make_tiny: Any) -> tuple[Any, Any]:
    tokenizer = word_tokenizer("t5")
    return make_fid(make_tiny("t5"), tokenizer, FidConfig(target="question")), tokenizer


def task_of(parts: tuple[Any, Any], *examples: MultiExample) -> DisambiguationTask:
    network, tokenizer = parts
    options: dict[str, Any] = {"size": 2, "batch_tokens": 400, "collate": network.collate}
    return DisambiguationTask([(list(examples), 1.0)], [("made", [EXAMPLE])], tokenizer, network.config, **options)


def test_an_item_holds_the_target_answer_first_and_its_passage() -> None:
    pairs = [rewriting_item(EXAMPLE, 2, random.Random(i)) for i in range(30)]
    for item, _ in pairs:
        assert (item.question, len(item.passages)) == (EXAMPLE.question, 2)
        assert any(item.previous[0] in text for _, text in item.passages)
    assert {(item.previous, target) for item, target in pairs} == {
        (("red", "blue"), "which colour is the ball ?"),
        (("blue", "red"), "which colour is the boat ?"),
    }


def test_only_questions_with_several_answers_and_rewrites_are_trained_on(parts: tuple[Any, Any]) -> None:
    alone = MultiExample("q", PASSAGES, (("red",),), "made", extra={"questions": ["q"]})
    bare = MultiExample("q", PASSAGES, (("red",), ("blue",)), "made")
    assert task_of(parts, alone, EXAMPLE, bare).sources[0][0] == [EXAMPLE]
    with pytest.raises(InputError, match="several answers with a disambiguated question each"):
        task_of(parts, alone, bare)


def test_the_target_is_not_cut(parts: tuple[Any, Any]) -> None:
    task = task_of(parts, EXAMPLE)
    _, (_, labels) = next(batches(task, 0, 0))
    assert max(row[row >= 0].numel() for row in labels) == 7  # which colour is the ball ? and the end
    assert task.config.max_answer_tokens == 48


def test_edit_f1_of_the_right_question_and_of_a_copy() -> None:
    class Rewriter:
        def __init__(self, write: Callable[[str, str], list[str]]) -> None:
            self.write = write

        def rewrite_many(self, jobs: Any) -> list[list[str]]:
            return [self.write(question, answer) for question, answer, _, _ in jobs]

    right = Rewriter(lambda question, answer: [f"Which colour is the {'ball' if answer == 'red' else 'boat'}?"])
    copy, silent = Rewriter(lambda question, answer: [question]), Rewriter(lambda question, answer: [])
    assert rewriting_edit_f1(right, [EXAMPLE]) == pytest.approx(1.0)
    assert rewriting_edit_f1(copy, [EXAMPLE]) == rewriting_edit_f1(silent, [EXAMPLE]) == 0.0
    assert rewriting_edit_f1(copy, []) == 0.0


def test_candidates_are_distinct_questions(parts: tuple[Any, Any]) -> None:
    rewriter = Seq2SeqRewriter(FidAnswerer(*parts, device="cpu"))
    passages = [Passage(str(i), *p) for i, p in enumerate(PASSAGES)]
    jobs = [("which colour ?", "red", ["blue"], passages), ("who ?", "a", [], [])]
    first, second = rewriter.rewrite_many(jobs)
    for candidates in (first, second):
        assert len({c.lower() for c in candidates if c.endswith("?")}) == len(candidates) <= 3
    assert rewriter.rewrite_many(jobs[:1]) == [first]


def test_case_comes_from_the_sources() -> None:
    assert [truecase(text, ["O'Neill wrote"]) for text in ("", "o'neill?")] == ["", "O'Neill?"]


def test_weights_that_write_answers_are_refused(make_tiny: Any, tmp_path: Path) -> None:
    tokenizer = word_tokenizer("t5")
    save_fid(make_fid(make_tiny("t5"), tokenizer), tmp_path / "t5", tokenizer=tokenizer)
    with pytest.raises(CheckpointError, match="not trained to write disambiguated questions"):
        load_rewriter(str(tmp_path / "t5"), "cpu")
