from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from reading_fakes import TableModel

from core.models.encoders.base import load_base
from core.models.span.answerer import Decoding, SpanAnswerer
from core.models.span.fast_loop import FastSpanLoop, FastTextLoop, Rereading, remaining
from core.models.span.network import SpanConfig, SpanNetwork
from core.types import Passage, RetrievedPassage

TEXTS = [
    "red ball in the town",
    "blue car of the north",
    "green boat",
    "black door in the east",
    "white film one two",
    "song book",
]
PASSAGES = [RetrievedPassage(Passage(str(i), "title", text), i + 1, 1.0, 0.5) for i, text in enumerate(TEXTS)]
QUESTION = "colour of the ball ?"
EVEN = Rereading(margin=1e9)  # as many passages at every step


@pytest.fixture(scope="module")
def answerer(tiny_bert_folder: Path) -> SpanAnswerer:
    torch.manual_seed(3)
    config = SpanConfig(base=str(tiny_bert_folder), max_tokens=48, max_prompt_tokens=32, max_answer_tokens=3)
    return SpanAnswerer(SpanNetwork(load_base(config.base), config), "cpu", Decoding(eoi_bias=-20.0))


@pytest.fixture
def rows_read(answerer: SpanAnswerer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of passage rows that the answerer reads at each step."""
    counts: list[int] = []
    answerer.first_steps.clear()
    scores = answerer.scores
    monkeypatch.setattr(answerer, "scores", lambda batch: counts.append(batch.rows - 1) or scores(batch))
    return counts


def greedy(model: object, steps: int = 4, previous: Sequence[str] = ()) -> list[str]:
    answers = list(previous)
    for _ in range(steps):
        proposal = model.propose(QUESTION, PASSAGES, answers)  # type: ignore[attr-defined]
        if not proposal.candidates:
            break
        answers.append(proposal.candidates[0].text)
    return answers


def test_the_first_step_is_exact_and_later_ones_read_less_unless_all_is_read_again(
    answerer: SpanAnswerer, rows_read: list[int]
) -> None:
    assert FastSpanLoop(answerer).propose(QUESTION, PASSAGES, ()) == answerer.propose(QUESTION, PASSAGES, ())
    answers = greedy(FastSpanLoop(answerer, EVEN))
    assert len(answers) == len(set(answers)) == 4
    assert rows_read == [6, 6, 2, 2, 2]  # the second loop has the first one's first step
    assert greedy(FastSpanLoop(answerer, Rereading(1.0, margin=float("inf")))) == greedy(answerer)


def test_what_is_read_again_can_still_hold_an_answer(answerer: SpanAnswerer) -> None:
    loop = FastSpanLoop(answerer)
    first = loop.propose(QUESTION, PASSAGES, ())
    previous = [first.candidates[0].text]
    order = [i for i, _ in remaining(loop._first, PASSAGES, previous)]
    assert sorted(order) == list(range(6))
    later = loop.propose(QUESTION, PASSAGES, previous)
    assert {c.evidence.passage_id for c in later.candidates if c.evidence} <= {str(i) for i in order[:2]}
    passages, logits = zip(*remaining(loop._first, PASSAGES, TEXTS[:3]))  # all words of three passages are given
    assert passages[3:] == (0, 1, 2)
    assert logits[3:] == (float("-inf"),) * 3
    assert list(logits) == sorted(logits, reverse=True)


def test_passages_far_below_the_best_are_left_out(answerer: SpanAnswerer, rows_read: list[int]) -> None:
    greedy(FastSpanLoop(answerer, Rereading(1.0, margin=0.0)), 2)
    greedy(FastSpanLoop(answerer, Rereading(1.0, margin=1e9)), 2)
    assert rows_read == [6, 1, 6]


def test_each_run_reads_everything_first(answerer: SpanAnswerer, rows_read: list[int]) -> None:
    loop = FastSpanLoop(answerer, EVEN)
    loop.propose(QUESTION, PASSAGES, ["white film"])  # a person pinned an answer: everything is read
    loop.propose(QUESTION, PASSAGES, ["white film", "red"])
    loop.propose(QUESTION, PASSAGES, ["white film"])  # an answer was taken back: the first step again
    loop.propose("another colour ?", PASSAGES, ["white film", "red"])
    loop.propose("another colour ?", PASSAGES[:3], ["white film", "red", "blue"])
    assert rows_read == [6, 2, 6, 3]


def test_an_answer_that_is_written_is_looked_for_in_the_passages() -> None:
    model = TableModel({"red": 0.5, "blue": 0.3, "green": 0.1})
    loop = FastTextLoop(model)
    assert greedy(loop, 3) == ["red", "blue", "green"]
    # all; those that hold the candidates that are left; then those without an answer so far, the best retrieved first
    assert ["".join(passages) for _, passages, _ in model.jobs] == ["012345", "12", "23"]
