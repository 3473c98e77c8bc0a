"""Democratic co-training: who votes for what, rounds that go on after a kill, and a run with tiny models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reading_fakes import RuleModel

from core.errors import InputError
from core.models.span.checkpoints import save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.training.cotraining import CoTraining, agreed, cotrain, ensemble_f1, label
from core.training.cotraining_run import TrainSpan
from core.training.data.examples import MultiExample
from core.training.options import TrainConfig

PASSAGES = (("north", "the ball is red"), ("south", "the ball is blue"), ("east", "the ball is green"))


def single(question: str, answer: str = "red") -> MultiExample:
    return MultiExample(question, PASSAGES, ((answer, f"the {answer}"),), "made")


FULL = [MultiExample("colour ?", PASSAGES, (("red",), ("blue",)), "made")]


def says(table: dict[str, Sequence[str]]) -> RuleModel:
    return RuleModel(lambda question: table.get(question, ()))


def test_more_than_half_must_agree_and_names_of_the_known_answer_do_not_count() -> None:
    assert agreed([["blue", "green"], ["Blue"], ["white"]], ["red"]) == ("blue",)
    assert agreed([["blue"], ["green"]], ["red"]) == ()  # one of two is not more than half
    assert agreed([["the red"], ["red one"]], ["red", "the red"]) == ()
    assert agreed([["blue", "blue sky"], ["blue", "blue sky"]], ["red"]) == ("blue",)  # one answer, shorter and longer


def test_labels_follow_the_algorithm() -> None:
    partial = [single("several ?"), single("one ?"), single("doubtful ?")]
    models = [
        says({"several ?": ["red", "blue"], "one ?": ["red"], "doubtful ?": ["red", "blue"]}),
        says({"several ?": ["blue", "green"], "one ?": [], "doubtful ?": ["red"]}),
        says({"several ?": ["Blue"], "one ?": ["the red"], "doubtful ?": ["green"]}),
    ]
    labels = label(models, partial, 5)
    assert labels.several == {0: ("blue",)}
    assert labels.single == (1,)  # nobody says anything else, even asked from nothing; somebody does of the third
    assert models[0].asked[0][1] == ["red"]  # the known answer is the first previous answer
    assert [(e.question, [names[0] for names in e.gold], e.source) for e in labels.examples(partial)] == [
        ("several ?", ["red", "blue"], "made-cotrained"),
        ("one ?", ["red"], "made-cotrained"),
    ]


class Training:
    """Trains nothing: its models say what they saw of the full data, and more with every example."""

    def __init__(self, stop_after: int = 1_000) -> None:
        self.calls: list[tuple[int, int, str]] = []
        self.stop_after = stop_after

    def __call__(self, examples: Sequence[MultiExample], seed: int, folder: Path) -> tuple[RuleModel, float]:
        if len(self.calls) == self.stop_after:
            raise KeyboardInterrupt
        self.calls.append((len(examples), seed, f"{folder.parent.name}/{folder.name}"))
        model = says({"several ?": ["red", "blue"], "one ?": ["red"]})
        return model, 0.1 * len(examples) + 0.01 * seed % 0.1


def go(out: Path, training: Callable[..., Any], **changes: Any) -> dict[str, Any]:
    config = CoTraining(**{"models": 2, "rounds": 2, "seed": 1, **changes})
    return cotrain(FULL, [single("several ?"), single("one ?")], training, config, out, lambda _: None)


def test_rounds_grow_the_data_and_the_best_last_model_is_named(tmp_path: Path) -> None:
    training = Training()
    report = go(tmp_path / "run", training)
    assert [n for n, _, _ in training.calls] == [1, 1, 3, 3, 3, 3]
    assert len({seed for _, seed, _ in training.calls}) == 6
    assert [r["questions"] for r in report["rounds"]] == [1, 3, 3]
    assert (report["rounds"][0]["several"], report["rounds"][0]["single"], report["rounds"][0]["left_out"]) == (1, 1, 0)
    assert report["best"].startswith("round-2/model-")
    assert json.loads((tmp_path / "run" / "cotraining.json").read_text()) == report


def test_the_models_vote_on_the_held_out_questions(tmp_path: Path) -> None:
    gold = MultiExample("several ?", (("", "red blue"),), (("red",), ("blue",)), "made", (), {})
    sure, unsure, wrong = (says({"several ?": several}) for several in (["red", "blue"], ["red"], ["green"]))
    assert ensemble_f1([sure, unsure, wrong], [gold], 6) == pytest.approx(2 / 3)  # red has two votes
    assert ensemble_f1([sure, wrong], [gold], 6) == 1  # no vote: the first model's answers
    config = CoTraining(models=2, rounds=1)
    report = cotrain(FULL, [single("one ?")], Training(), config, tmp_path, lambda _: None, held_out=[gold])
    assert [r["ensemble"] for r in report["rounds"]] == [1, 1]


@pytest.mark.parametrize("killed_after", [0, 1, 2, 3, 5])
def test_a_killed_run_ends_as_an_undisturbed_one(killed_after: int, tmp_path: Path) -> None:
    report = go(tmp_path / "whole", Training())
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path / "killed", Training(killed_after))
    assert go(tmp_path / "killed", Training()) == report
    whole, killed = ((tmp_path / name / "round-0" / "labels.json").read_text() for name in ("whole", "killed"))
    assert whole == killed


def test_labels_that_are_written_are_not_made_again(tmp_path: Path) -> None:
    go(tmp_path, Training())
    (tmp_path / "round-0" / "labels.json").write_text('{"several": {}, "single": [1]}')
    training = Training()
    go(tmp_path, training)
    assert [n for n, _, _ in training.calls][:4] == [1, 1, 2, 2]


def test_bad_input_is_named(tmp_path: Path) -> None:
    go(tmp_path / "a", Training())
    with pytest.raises(InputError, match=r"other settings \(rounds\)"):
        go(tmp_path / "a", Training(), rounds=1)
    with pytest.raises(InputError, match="multi-answer questions"):
        cotrain([], [single("q")], Training(), CoTraining(), tmp_path / "b")
    with pytest.raises(InputError, match="no answer or several"):
        cotrain(FULL, FULL, Training(), CoTraining(), tmp_path / "c")


@pytest.mark.parametrize("rank", [0, 2])
def test_tiny_models_are_trained_and_resumed(span_config: SpanConfig, make_tiny: Any, tmp_path: Path, rank: int) -> None:
    save_span_network(SpanNetwork(make_tiny("bert"), replace(span_config, rank=rank)), tmp_path / "init")
    config = TrainConfig(steps=1, warmup=1, evaluate_every=5, precision="fp32", device="cpu")
    lines: list[str] = []
    train = TrainSpan(tmp_path / "init", config, [("made", FULL)], 4, 0.3, 2000, lines.append)
    partial = [single("colour of the ball ?"), single("colour of the car ?", "blue")]
    rounds = CoTraining(models=2, rounds=1)
    report = cotrain(FULL, partial, train, rounds, tmp_path / "run", lines.append)
    assert any("step 1" in line for line in lines)
    assert len(report["rounds"]) == 2
    assert (tmp_path / "run" / report["best"] / "last" / "model.safetensors").exists()
    lines.clear()
    assert cotrain(FULL, partial, train, rounds, tmp_path / "run", lines.append) == report
    assert not any("step 1" in line for line in lines)  # nothing was trained again
    with pytest.raises(InputError, match=r"other settings \(steps\)"):  # else half of the models would have learned for longer
        cotrain(FULL, partial, replace(train, config=replace(config, steps=2)), rounds, tmp_path / "run", lines.append)
