"""Objectives, items, and the training loop on a tiny BERT."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from reading_fakes import RuleModel
from torch import nn

from core.cli import main
from core.errors import InputError
from core.models.encoders.base import load_base
from core.models.span.answerer import SpanAnswerer
from core.models.span.checkpoints import load_span_network, save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import ROOT
from core.text import find_spans, normalize_answer
from core.training.answerer import AnswererTask, add_pseudo_answers, sample_item
from core.training.data.chunks import batches
from core.training.data.examples import MultiExample, ReadingRow
from core.training.held_out import run_f1
from core.training.options import TrainConfig
from core.training.reader import ReaderTask, marginal_loss
from core.training.trainer import fit

COLOURS = ["red", "blue", "green", "black", "white"]
THINGS = ["ball", "car", "door", "boat", "town", "film", "song", "book"]


def examples(count: int, seed: int = 0) -> list[MultiExample]:
    """Examples that ask which colour is the THING: two passages answer, one is about something else."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        thing, other = rng.sample(THINGS, 2)
        a, b, c = rng.sample(COLOURS, 3)
        texts = (thing, f"the {thing} in the north is {a} ."), (thing, f"the {thing} in the south is {b} .")
        passages = (*texts, (other, f"the {other} is {c} ."))
        out.append(MultiExample(f"colour of the {thing}", passages, ((a,), (b,)), "made"))
    return out


@pytest.fixture
def network(span_config: SpanConfig) -> SpanNetwork:
    torch.manual_seed(0)
    return SpanNetwork(load_base(span_config.base), span_config)


def test_the_marginal_loss_by_hand() -> None:
    spans = torch.tensor([[0.0, math.log(2), math.log(3), -math.inf], [0.0, 0.0, -math.inf, -math.inf]])
    nothing = torch.tensor([math.log(4), 0.0])
    gold = torch.tensor([[False, True, True, False], [False, False, False, False]])
    want = torch.tensor([False, True])
    # first: (2 + 3) of (1 + 2 + 3 + 4); second: 1 of 3
    first, second = -math.log(5 / 10), -math.log(1 / 3)
    assert float(marginal_loss(spans, nothing, gold, want, torch.ones(2))) == pytest.approx((first + second) / 2)
    weight = torch.tensor([3.0, 1.0])
    assert float(marginal_loss(spans, nothing, gold, want, weight)) == pytest.approx((3 * first + second) / 4)
    assert float(marginal_loss(spans, nothing, gold, want, torch.zeros(2))) == 0.0


def test_a_row_without_a_target_that_weighs_nothing_leaves_the_gradient_finite() -> None:
    spans = torch.tensor([[0.0, 1.0], [0.5, -math.inf]], requires_grad=True)
    gold = torch.tensor([[True, False], [False, False]])
    loss = marginal_loss(spans, torch.zeros(2), gold, torch.zeros(2, dtype=torch.bool), torch.tensor([1.0, 0.0]))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(spans.grad).all()


def test_targets_and_previous_answers_are_the_gold_answers() -> None:
    example = examples(1)[0]
    gold = {normalize_answer(names[0]) for names in example.gold}
    ends = 0
    for seed in range(60):
        item = sample_item(example, 3, 0.35, random.Random(seed))
        targets = {normalize_answer(names[0]) for names, _ in item.targets}
        previous = {normalize_answer(p) for p in item.previous}
        assert targets | previous == gold
        assert not targets & previous
        ends += not targets
    assert 10 < ends < 35
    always = [sample_item(example, 3, 1.0, random.Random(s)) for s in range(10)]
    assert all(i is not None and not i.targets and len(i.previous) == 2 for i in always)


def test_one_target_of_the_paper_is_drawn_among_the_remaining_answers() -> None:
    example = examples(1)[0]
    items = [sample_item(example, 3, 0.0, random.Random(seed), one_target=True) for seed in range(40)]
    assert {len(i.targets) for i in items} == {1}
    assert {len(i.previous) for i in items} == {0, 1}
    assert {names[0] for i in items for names, _ in i.targets} == {names[0] for names in example.gold}


def test_answers_whose_passage_is_left_out_are_no_targets_and_there_may_be_none() -> None:
    example = examples(1)[0]
    for item in filter(None, (sample_item(example, 1, 0.0, random.Random(seed)) for seed in range(30))):
        for names, _ in item.targets:
            assert any(find_spans(text, names[0]) for _, text in item.passages)
        assert len(item.targets) + len(item.previous) == 1
    nowhere = MultiExample("q", (("t", "the ball ."),), (("red",),), "x")
    assert sample_item(nowhere, 3, 0.0, random.Random(0)) is None
    item = sample_item(replace(nowhere, gold=()), 3, 0.0, random.Random(0))
    assert (item.previous, item.targets) == ((), ())


def test_known_wrong_answers_come_among_the_previous() -> None:
    (base,) = examples(1)
    right = base.gold[0][0]
    example = replace(base, bad=("the wrong film", right))
    items = [i for s in range(100) if (i := sample_item(example, 3, 0.35, random.Random(s))) is not None]
    wrong = [i for i in items if "the wrong film" in i.previous]
    assert 8 < len(wrong) < 40
    assert {len(i.targets) + len(i.previous) for i in wrong} == {3}
    assert all(i.previous.count(right) <= 1 for i in items)  # a "bad" answer that is right is not used


def task(span_config: SpanConfig, count: int = 40) -> AnswererTask:
    return AnswererTask([(examples(count), 1.0)], [("dev", examples(4, seed=9))], span_config, "tune", 3, 0.3, 1024)


def test_batches_depend_on_seed_and_position_only(span_config: SpanConfig) -> None:
    answerer_task = task(span_config)
    first, again = (list(itertools.islice(batches(answerer_task, 3, 0), 12)) for _ in range(2))
    assert any(b - a > 1 for (a, _), (b, _) in itertools.pairwise(first))  # over the edge of a chunk
    for (p, (rows, gold, eoi, weight, *_)), (q, (same_rows, *same)) in zip(first, again):
        assert p == q
        assert torch.equal(rows.input_ids, same_rows.input_ids)
        assert all(torch.equal(one, other) for one, other in zip((gold, eoi, weight), same))
        assert weight.all()  # every made question has its answers in its rows
        assert torch.equal(gold.flatten(1).any(1), ~eoi)
        assert rows.input_ids.numel() <= 2 * 1024


def test_no_usable_examples(span_config: SpanConfig) -> None:
    with pytest.raises(InputError, match="no training question"):
        AnswererTask([([], 1.0)], [], span_config, "tune", 3, 0.3, 1024)
    with pytest.raises(InputError, match="no training row"):
        ReaderTask([], [], span_config)


def test_run_f1_by_hand() -> None:
    model: Any = RuleModel(lambda question: ("red", "pink"))
    example = MultiExample("q", (("t", "x"),), (("crimson", "Red"), ("blue",)), "x")
    assert run_f1(model, [example]) == pytest.approx(0.5)  # 1 right of 2 said and 2 wanted
    assert run_f1(model, [example], max_answers=1) == pytest.approx(2 / 3)
    assert run_f1(model, []) == 0.0


def quiet(**changes: Any) -> TrainConfig:
    values: dict[str, Any] = {"lr": 1e-3, "head_lr": 1e-2, "warmup": 2, "evaluate_every": 100, **changes}
    return TrainConfig(precision="fp32", device="cpu", **values)


def store(network: nn.Module, folder: Path, row: dict[str, Any]) -> None:
    save_span_network(network, folder, {"figures": row})


def test_the_loss_falls_and_the_run_folder_is_whole(span_config: SpanConfig, network: SpanNetwork, tmp_path: Path) -> None:
    frozen = {n: p.clone() for n, p in network.named_parameters() if ".embeddings." in n}
    row = fit(network, task(span_config), quiet(steps=60, evaluate_every=30), tmp_path / "run", store, log=lambda _: None)
    rows = list(map(json.loads, (tmp_path / "run" / "log.jsonl").read_text().splitlines()))
    assert [r["step"] for r in rows] == [30, 50, 60, 60]
    assert rows[1]["loss"] < rows[0]["loss"]
    assert row["step"] == 60
    assert {"figure", "dev"} <= set(row)
    assert all(torch.equal(p, dict(network.named_parameters())[n]) for n, p in frozen.items())
    for name in ("best", "last"):
        loaded = load_span_network(tmp_path / "run" / name)
        assert SpanAnswerer(loaded, "cpu").config == span_config
    assert json.loads((tmp_path / "run" / "last" / "config.json").read_text())["about"]["figures"]["step"] == 60
    assert not (tmp_path / "run" / "state-new").exists()


NUMBERS = [("steps", 0), ("lr", 0.0), ("head_lr", -1.0), ("lr", math.nan), ("evaluate_every", 0), ("minutes", -1.0)]


@pytest.mark.parametrize(
    ("name", "value"), [*NUMBERS, ("save_minutes", -1.0), ("save_minutes", math.nan), ("precision", "fp8")]
)
def test_bad_training_settings(name: str, value: Any) -> None:
    with pytest.raises(InputError):
        TrainConfig(**{name: value})


def test_a_readers_rows_have_their_answers_or_none(span_config: SpanConfig, network: SpanNetwork) -> None:
    rows = [ReadingRow(e.question, p, e.gold[i] if i < 2 else ()) for e in examples(40) for i, p in enumerate(e.passages)]
    reader_task = ReaderTask(rows, rows[:24], span_config, 1024)
    batch, gold, empty, weight = next(batches(reader_task, 0, 0))[1]
    assert torch.equal(gold.flatten(1).any(1), ~empty)
    assert weight.all()
    assert not batch.prompted
    figures = reader_task.evaluate(network)
    assert figures["figure"] == figures["exact_match"] + 0.5 * figures["abstains"]


def test_an_answer_that_cannot_be_marked_is_no_reason_to_abstain(span_config: SpanConfig) -> None:
    long = "north south east west"  # 4 tokens; a span has 3 at most
    rows = [ReadingRow("who", ("t", f"the {long} ."), (long,)), ReadingRow("who", ("t", "the ball ."), ())]
    _, gold, silent, weight = ReaderTask(rows, [], span_config).batch(rows)
    assert not gold.any()
    assert silent.tolist() == [False, True]
    assert weight.tolist() == [0.0, 1.0]


def test_pseudo_answers_are_cached(network: SpanNetwork, tmp_path: Path) -> None:
    save_span_network(network, tmp_path / "reader")
    lines: list[str] = []
    reading = (str(tmp_path / "reader"), "cpu", tmp_path / "cache", lines.append)
    first, again = ([e.extra["pseudo"] for e in add_pseudo_answers(examples(3), *reading)] for _ in range(2))
    assert first == again
    assert lines == ["pseudo answers 3 of 3"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    monkeypatch.setenv("AMBISCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMBISCOPE_DEVICE", "cpu")
    return lambda *words: main(["train", *map(str, words)])


@pytest.mark.parametrize("name", ["starter", "starter_test"])
def test_what_is_kept_for_judging_is_never_trained_on(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    starter = ROOT / "data" / name
    link, copy, packed = (tmp_path / kind for kind in ("link", "copy", "packed"))
    link.symlink_to(starter)
    copy.mkdir()
    packed.mkdir()
    contents = {"questions.json": (starter / "questions.json").read_bytes(), "passages.tsv": b"id\ttext\ttitle\n"}
    for file, content in contents.items():
        (copy / file).write_bytes(content)
        (packed / f"{file}.gz").write_bytes(gzip.compress(content))
    for words in (
        *(("--annotated", folder) for folder in (starter, link, copy, packed)),
        ("--reading", packed / "questions.json.gz"),
        ("--passages", starter / "passages.tsv"),
        ("--ambignq", starter / "questions.json"),
        *((option, copy / "questions.json") for option in ("--ambignq", "--reading", "--multi", "--multi-dev")),
    ):
        assert command("answerer", *words) == 2
        assert f"contains data/{name}, which must not be used for training" in capsys.readouterr().err


def test_what_the_command_refuses(command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("reader", "--reading", tmp_path / "none.jsonl") == 2
    assert "none.jsonl: there is no such file" in capsys.readouterr().err
    assert command("answerer", "--init", "no-such-checkpoint") == 3
    assert "no checkpoint 'no-such-checkpoint'" in capsys.readouterr().err


def test_the_command_trains_from_files(
    command: Callable[..., int],
    span_config: SpanConfig,
    network: SpanNetwork,
    tmp_path: Path,
    jsonl: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both models, from the documented layouts to a checkpoint that loads."""
    save_span_network(network, tmp_path / "init")
    several, single = [], []
    for e in examples(20):
        passages = [{"title": title, "text": text} for title, text in e.passages]
        several.append({"question": e.question, "passages": passages, "answers": e.gold})
        single.append({"question": e.question, "title": "", "passage": e.passages[0][1], "answers": e.gold[0]})
    multi, more, reading = jsonl("multi.jsonl", *several), jsonl("more.jsonl", *several * 2), jsonl("reading.jsonl", *single)
    short = ("--init", tmp_path / "init", "--steps", 2, "--precision", "fp32", "--batch-tokens", 512)
    answerer = ("answerer", "--multi", multi, "--multi-dev", multi, *short, "--out", tmp_path / "a")
    assert command(*answerer) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 2
    assert command(*answerer) == 0  # the same run: nothing is left to do
    low = ("answerer", "--multi", multi, *short, "--rank", 2, "--out", tmp_path / "low")
    assert command(*low) == command(*low) == 0  # goes on with the differences
    merged = load_span_network(tmp_path / "low" / "last")  # a checkpoint as any
    assert SpanAnswerer(merged, "cpu").config == span_config
    other = ("answerer", "--multi", more, *short, "--out", tmp_path / "a")
    changes = {"rank": (*answerer, "--rank", 2), "eoi_share": (*answerer, "--eoi-share", 0.5), "multi, multi_dev": other}
    for names, words in changes.items():
        assert command(*words) == 2
        assert f"other settings ({names})" in capsys.readouterr().err
    about = json.loads((tmp_path / "a" / "last" / "config.json").read_text())["about"]
    assert about["arguments"]["multi"] == [f"{tmp_path.name}/multi.jsonl"]
    assert command("reader", "--reading", reading, *short, "--out", tmp_path / "r") == 0
    assert (tmp_path / "r" / "best" / "model.safetensors").exists()
    assert command("answerer", "--stage", "pretrain", "--reading", reading, *short) == 2
    assert "--stage pretrain needs --reader" in capsys.readouterr().err
