"""One network trained as answerer and as per-passage reader, and documents made to disagree."""

from __future__ import annotations

import itertools
import random

import torch

from core.models.encoders.base import load_base
from core.models.span.network import SpanConfig, SpanNetwork
from core.training.answerer import AnswererTask, JointTask
from core.training.data.chunks import batches
from core.training.data.composed import conflicting_examples, namesake_examples, replaced
from core.training.data.examples import MultiExample, ReadingExample, ReadingRow
from core.training.data.mining import Miner
from core.training.data.mixtures import in_shares
from core.training.reader import ReaderTask


def test_batches_of_both_kinds_resume_and_train_one_network(span_config: SpanConfig) -> None:
    passages = (("ball", "the ball in the north is red ."), ("ball", "the ball in the south is blue ."))
    example = MultiExample("colour of the ball", passages, (("red",), ("blue",)), "made")
    rows = [ReadingRow(example.question, passages[0], ("red",)), ReadingRow("the film", passages[1], ())]
    answerer = AnswererTask([([example] * 8, 1.0)], [("dev", [example])], span_config, "tune", 2, 0.3, 256)
    task = JointTask(answerer, ReaderTask(rows * 8, rows, span_config, 256))
    seen = list(itertools.islice(batches(task, 0, 0), 60))
    assert {name for _, (name, _) in seen} == {"answer", "read"}
    position, (name, _) = next(batches(task, 0, seen[3][0]))
    assert (position, name) == (seen[4][0], seen[4][1][0])
    network = SpanNetwork(load_base(span_config.base), span_config)
    for _, batch in seen[::6]:
        assert task.loss(network, batch, torch.device("cpu")).isfinite()
    assert {"dev", "exact_match", "abstains", "figure"} <= set(task.evaluate(network))


def test_every_occurrence_of_an_answer_is_replaced() -> None:
    text = "Ann Lee wrote it. Lee later said that Ann Lee wrote too fast."
    assert replaced(text, ["Ann Lee", "Lee"], "Bo Dahl") == "Bo Dahl wrote it. Bo Dahl later said that Bo Dahl wrote too fast."
    assert replaced(text, ["Ann Lee"], "Lee") is None  # it is in the text already
    assert replaced(text, ["Carl"], "Bo Dahl") is None


def test_documents_that_disagree() -> None:
    filler = "It was long and slow and nobody who saw the whole of it had much good to say about what came next. " * 2
    people = ["Ann Lee", "Bo Dahl", "Cy Young", "Di Moss"]
    reading = []
    for i, person in enumerate(people):
        text = f"Film {i} was directed by {person}. {filler}"
        reading.append(ReadingExample(f"Who directed the film number {i} of all?", f"Film {i}", text, (person,), "made"))
    noise = [(f"Other {i}", "A film of that number, of all films, that nobody directed.") for i in range(6)]
    examples = conflicting_examples(reading, Miner(noise), 4, 10, 0)
    assert len(examples) == 4
    for e in examples:
        assert len(e.gold) in (2, 3)
        assert len(e.passages) >= len(e.gold)
        for names, (_, text) in zip(e.gold, e.passages):
            assert [person for person in people if person in text] == [names[0]]


def test_namesakes_are_asked_about_by_one_name() -> None:
    reading = []
    for title, year in {"Alder Press": "1901", "Beech Motors": "1922", "Cedar Bank (Ohio)": "1954"}.items():
        name = title.split(" (")[0]
        text = f"{name} was founded in {year} by two brothers."
        reading.append(ReadingExample(f"When was {name} founded?", title, text, (year,), "made"))
    noise = [("Other", "A company was founded, nobody knows when.")] * 4
    examples = namesake_examples(reading, Miner(noise), 5, 10, 0)
    assert examples
    for e in examples:
        name = e.passages[0][0]
        assert name in e.question
        assert 2 <= len(e.gold) <= 3
        texts = [f"{name} was founded in {year} by two brothers." for (year,) in e.gold]
        assert list(e.passages[: len(texts)]) == [(name, text) for text in texts]


def test_an_epoch_has_its_shares() -> None:
    def rows(name: str, count: int) -> list[ReadingRow]:
        return [ReadingRow(f"{name}{i}", ("t", "x"), ()) for i in range(count)]

    epoch = in_shares([(rows("a", 40), 0.4), (rows("b", 100), 0.4), (rows("c", 3), 0.2)], random.Random(0))
    assert [sum(r.question.startswith(n) for r in epoch) for n in "abc"] == [40, 40, 3]
