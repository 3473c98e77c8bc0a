"""`python -m benchmarks.paper`: what it would train is what `core train` takes, in an order in which everything is there before it is read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

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


def test_the_table_shows_means_over_seeds() -> None:
    def report(*values: float) -> dict[str, Any]:
        rows = [{"id": str(i), "ambiguous": i % 2 == 0, "metrics": {"F1 answer": v}} for i, v in enumerate(values)]
        return {"rows": rows, "scores": {"F1 answer": {"all": sum(values) / len(values)}}}

    failed = report(1.0, 1.0)
    failed["rows"][1] = {"id": "1", "ambiguous": False, "error": "boom"}
    text = paper.table({"full": [report(1.0, 1.0), report(1.0, 0.5)], "less": [report(0.0, 0.5), failed]})
    full, less = text.splitlines()[2:]
    assert full.startswith("| full | 87.5 ")
    assert "| 75.0 to 100.0 |" in full
    assert less.startswith("| less | 37.5 ")  # what failed counts as nothing
    assert "| -50.0 |" in less


def test_a_seed_is_carried_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = planned(monkeypatch, "--out", str(tmp_path), "--shares")
    ran: list[str] = []

    def run(command: list[str], device: str) -> None:
        ran.append(command[0])
        file = Path(command[command.index("--out") + 1]) / "last" / "config.json"
        file.parent.mkdir(parents=True)
        file.write_text("{}")

    def evaluate(*arguments: Any, device: str, **weights: str) -> dict[str, Any]:
        assert set(weights) <= {"answerer", "reader", "seq2seq"}
        return {}

    monkeypatch.setattr(paper, "run", run)
    monkeypatch.setattr(paper, "evaluate", evaluate)
    assert ("Table 3: ablations", "w/o interleaving") in paper.carry_out(args, 0)
    assert ran == ["train"] * 9
    paper.carry_out(args, 0)
    assert len(ran) == 9
