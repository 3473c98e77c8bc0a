"""`python -m benchmarks.paper`: what it would train is what `core train` takes, in an order in which everything is there before it is read."""

from __future__ import annotations

import argparse

import pytest

from benchmarks import paper
from core.cli import parser

WORDS = ["--data", "somewhere", "--seeds", "0", "1"]


def planned(monkeypatch: pytest.MonkeyPatch, *words: str) -> argparse.Namespace:
    kept: list[argparse.Namespace] = []
    monkeypatch.setattr(paper, "cost", lambda args: kept.append(args) or "")
    assert paper.main([*WORDS, *words, "--dry-run"]) == 0
    return kept[0]


def test_every_training_is_a_command_and_reads_what_was_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made = paper.plan(planned(monkeypatch), 0)
    done: list[str] = []
    for training in made.trainings:
        args = parser().parse_args(["train", *training.words, "--out", str(training.out)])
        assert args.seed == 0
        for start in (args.init, getattr(args, "reader", None)):
            named = (start or "").removeprefix("small:")
            assert not named or named in done, training.out
        done.append(str(training.weights))
    assert len(set(done)) == len(done) == 12
    assert {str(w.weights) for j in made.judged for w in j.weights.values()} <= set(done)
    one, other = (next(j for j in made.judged if j.row == row) for row in ("loop", "one pass"))
    words = [next(iter(j.weights.values())).words for j in (one, other)]
    assert [w for w in words[0] if w != "step"] == [w for w in words[1] if w != "spliced"]  # everything else is equal
