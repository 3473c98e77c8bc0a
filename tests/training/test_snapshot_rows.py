"""Rows of a snapshot as training examples: what people rejected is never a target, and tempts as a hard negative."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from core.errors import FormatError
from core.training.answerer_task import sample_item
from core.training.examples import MultiExample, read_multi
from core.training.mixtures import load_multi

ROW = {
    "question": "Which colour?",
    "passages": [
        {"id": f"p{n}", "title": "", "text": text} for n, text in enumerate(["Red here.", "Green there.", "Blue.", "Grey."])
    ],
    "answers": [["Red", "crimson"], ["Green"]],
    "negatives": ["green", "grey"],
}


def examples(tmp_path: Path, *rows: dict[str, Any]) -> list[MultiExample]:
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return list(read_multi(path))


def test_a_rejected_answer_is_no_target(tmp_path: Path) -> None:
    (e,) = examples(tmp_path, ROW)
    assert (e.gold, e.bad) == ((("Red", "crimson"),), ("green", "grey"))
    rng = random.Random(0)
    for _ in range(60):
        item = sample_item(e, 3, 0.3, rng)
        if item is not None:
            assert {a for aliases, _ in item.targets for a in aliases} <= {"Red", "crimson"}


def test_a_passage_with_a_wrong_answer_is_among_those_that_are_read(tmp_path: Path) -> None:
    (e,) = examples(tmp_path, {**ROW, "negatives": ["grey"], "supporting": ["p0"]})
    assert e.extra["supporting"] == ["p0"]
    rng = random.Random(0)
    read = [item.passages for _ in range(200) if (item := sample_item(e, 2, 0.0, rng)) is not None]
    with_grey = sum(any("Grey" in text for _, text in passages) for passages in read)
    assert with_grey > 0.9 * len(read)  # 1/3 without the exchange


def test_supporting_passages_come_first(tmp_path: Path) -> None:
    (e,) = examples(tmp_path, {**ROW, "supporting": ["p2", "p1", "elsewhere"]})
    assert [text for _, text in e.passages] == ["Green there.", "Blue.", "Red here.", "Grey."]
    assert e.extra["supporting"] == ["p1", "p2"]
    with pytest.raises(FormatError, match="supporting"):
        examples(tmp_path, {**ROW, "supporting": "p1"})


def test_questions_without_an_answer(tmp_path: Path) -> None:
    nothing = {**ROW, "answers": [], "no_answer": True}
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (nothing, {**ROW, "answers": []}, {**ROW, "no_answer": True})))
    kept = load_multi([path])
    assert [e.extra.get("no_answer") for e in kept] == [True, None]  # unknown answers are no lesson, answers overrule the flag
    item = sample_item(kept[0], 3, 0.3, random.Random(0))
    assert item is not None
    assert (item.previous, item.targets) == ((), ())  # [EOI] at once
