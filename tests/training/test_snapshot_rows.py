"""Rows of a snapshot as training examples: what people rejected is never a target, and tempts as a hard negative."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from tiny_models import word_tokenizer

from core.errors import FormatError
from core.models.encoders.base import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.training.answerer import AnswererTask, sample_item
from core.training.data.chunks import batches
from core.training.data.examples import MultiExample, read_multi
from core.training.data.mixtures import load_multi
from core.training.fid import FidTask
from core.types import EOI

Jsonl = Callable[..., Path]
ROW = {
    "question": "Which colour?",
    "passages": [
        {"id": f"p{n}", "title": "", "text": text} for n, text in enumerate(["Red here.", "Green there.", "Blue.", "Grey."])
    ],
    "answers": [["Red", "crimson"], ["Green"]],
    "negatives": ["green", "grey"],
}


def examples(jsonl: Jsonl, *rows: dict[str, Any]) -> list[MultiExample]:
    return list(read_multi(jsonl("m.jsonl", *rows)))


def test_a_rejected_answer_is_no_target_and_its_passage_is_read(jsonl: Jsonl) -> None:
    (e,) = examples(jsonl, ROW)
    assert (e.gold, e.bad) == ((("Red", "crimson"),), ("green", "grey"))
    rng = random.Random(0)
    items = [item for _ in range(60) if (item := sample_item(e, 3, 0.3, rng)) is not None]
    assert {a for item in items for aliases, _ in item.targets for a in aliases} == {"Red", "crimson"}
    (e,) = examples(jsonl, {**ROW, "negatives": ["grey"], "supporting": ["p0"]})
    assert e.extra["supporting"] == ["p0"]
    rng = random.Random(0)
    read = [item.passages for _ in range(200) if (item := sample_item(e, 2, 0.0, rng)) is not None]
    with_grey = sum(any("Grey" in text for _, text in passages) for passages in read)
    assert with_grey > 0.9 * len(read)  # 1/3 without the exchange


def test_supporting_passages_come_first(jsonl: Jsonl) -> None:
    (e,) = examples(jsonl, {**ROW, "supporting": ["p2", "p1", "elsewhere"]})
    assert [text for _, text in e.passages] == ["Green there.", "Blue.", "Red here.", "Grey."]
    assert e.extra["supporting"] == ["p1", "p2"]
    with pytest.raises(FormatError, match="supporting"):
        examples(jsonl, {**ROW, "supporting": "p1"})


def test_questions_without_an_answer(jsonl: Jsonl) -> None:
    nothing = {**ROW, "answers": [], "no_answer": True}
    path = jsonl("m.jsonl", nothing, {**ROW, "answers": []}, {**ROW, "no_answer": True})
    loaded = load_multi([path])
    # unknown answers are no lesson, answers overrule the flag
    assert [e.extra.get("no_answer") for e in loaded] == [True, None]
    item = sample_item(loaded[0], 3, 0.3, random.Random(0))
    assert (item.previous, item.targets) == ((), ())  # [EOI] at once


WRONG = {**ROW, "answers": [], "negatives": ["green", "grey", "purple"], "answers_known": False}


def test_wrong_answers_alone_are_for_who_asks_for_them(jsonl: Jsonl) -> None:
    unknown = {**ROW, "answers": []}  # not said that the right ones are unknown: perhaps a damaged row
    path = jsonl("m.jsonl", WRONG, unknown, {**ROW, "answers_known": False})
    assert [bool(e.gold) for e in load_multi([path])] == [True]  # a reader would take every passage for silent
    loaded = load_multi([path], negatives=True)
    assert [e.extra.get("negatives_only") for e in loaded] == [True, None]
    rng = random.Random(0)
    items = [sample_item(loaded[0], 2, 1.0, rng) for _ in range(50)]
    assert all(i is not None and i.avoid and not i.previous and not i.targets for i in items)
    assert {a for i in items if i is not None for a in i.avoid} == {"green", "grey"}  # purple stands nowhere


def test_a_wrong_answer_loses_and_stopping_is_not_learned(jsonl: Jsonl, span_config: SpanConfig) -> None:
    texts = ["the ball in the north is red .", "the ball in the south is blue ."]
    passages = [{"id": f"p{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    row = {"question": "colour of the ball", "passages": passages, "answers": [], "negatives": ["red"], "answers_known": False}
    (example,) = examples(jsonl, row)
    task = AnswererTask([([example], 1.0)], [], span_config, "tune", 2, 0.5, 1024)
    torch.manual_seed(0)
    network = SpanNetwork(load_base(span_config.base), span_config)
    _, batch = next(batches(task, 0, 0))
    rows, gold, _, weight, _, unknown = batch
    assert unknown.any()
    assert weight.all()
    spans, eoi = (scores.detach().requires_grad_() for scores in network(rows))
    task.loss(Mock(return_value=(spans, eoi)), batch, torch.device("cpu")).backward()
    assert not eoi.grad.any()  # neither to stop nor to go on
    assert (spans.grad[gold] > 0).all()
    assert not spans.grad[unknown].any()  # "is red", "red ." are neither wrong nor what is wanted


def test_an_encoder_decoder_learns_nothing_from_wrong_answers_alone(jsonl: Jsonl) -> None:
    row = {"question": "colour", "passages": [{"text": "red or blue"}], "answers": [], "negatives": ["red"]}
    known = {**row, "answers": [["blue"]]}
    tokenizer = word_tokenizer("t5")
    tokenizer.add_tokens([EOI])
    task = FidTask([(examples(jsonl, {**row, "answers_known": False}, known), 1.0)], [], tokenizer, None, "tune", 2, 0.0, 1024)
    assert {target for _, target in task.items(0, 0)} == {"blue"}  # and never [EOI]
