"""`python -m benchmarks.paper`: what it would train is what `core train` takes, in an order in which everything is there before it is read."""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import pytest
from command_line import jsonl

from benchmarks import paper
from core.cli import parser
from core.json_io import read_lines


def test_every_training_is_a_command_and_reads_what_was_trained_before(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: list[argparse.Namespace] = []
    monkeypatch.setattr(paper, "cost", lambda args: arguments.append(args) or "")
    assert paper.main(["--data", "somewhere", "--seeds", "0", "1", "--dry-run"]) == 0
    plan = paper.plan(arguments[0], 0)
    done: list[str] = []
    mechanism: dict[str, str] = {}
    for training in plan.trainings:
        args = parser().parse_args(["train", *training.words, "--out", str(training.out)])
        assert args.seed == 0
        mechanism[str(training.weights)] = getattr(args, "prompting", "")
        if training.out.name.startswith("no-") or training.out.name == "ambigprompt":
            whole = training.steps + (
                next(t.steps for t in plan.trainings if str(t.weights) == args.init) if "pretrained" in args.init else 0
            )
            assert whole == 10_000  # each variant has as many steps
            assert "pretrained" not in args.init or mechanism[args.init] == args.prompting  # pretrained with its own mechanism
        for start in (args.init, getattr(args, "reader", None)):
            named = (start or "").removeprefix("small:")
            assert not named or named in done, training.out
        done.append(str(training.weights))
    assert len(set(done)) == len(done) == 13
    assert {str(w.weights) for j in plan.judged for w in j.weights.values()} <= set(done)
    one, other = (next(j for j in plan.judged if j.row == row) for row in ("loop", "one pass"))
    words = [next(iter(j.weights.values())).words for j in (one, other)]
    assert [w for w in words[0] if w != "step"] == [w for w in words[1] if w != "spliced"]  # everything else is equal


def test_multi_span_questions_are_told_apart_by_the_answers_of_their_passage(tmp_path: Path) -> None:
    row = {"question": "q", "passages": [{"title": "t", "text": "Oslo, Rome and Bonn"}]}
    rows = [
        {"id": "a", "source": "multispanqa", "answers": [["Rome"], ["Oslo", "Christiania"], ["Bonn"]], **row},
        {"id": "b", "source": "quoref-dev", "answers": [["Rome"], ["Paris"]], **row},
        {"id": "c", "source": "asqa", "answers": [["Rome"], ["Oslo"]], **row},
    ]
    (tmp_path / "multi").mkdir()
    (tmp_path / "multi" / "dev.jsonl.gz").write_bytes(gzip.compress(jsonl(rows).encode()))
    file = paper.multi_span(argparse.Namespace(data=tmp_path, out=tmp_path))
    asked = [row for _, row in read_lines(file)]
    assert paper.by_answers(asked) == {"three or more answers": {"a"}, "one answer, or none": {"b"}}
