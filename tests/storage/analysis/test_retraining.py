"""Retraining, with stand-ins for the two commands: what they are asked, what is refused, and that a step that is finished is not repeated."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from storage_samples import evaluation_report, evaluation_row, prediction

from core.cli import parser
from core.errors import AmbiscopeError, CancelledError, FormatError, InputError, NotFoundError, StorageError
from core.settings import Settings
from storage.analysis import retraining
from storage.analysis.retraining import Retrained, retrain, run_command
from storage.exchange.filters import Filters
from storage.store import Store

FOLDER = "retrained-0001-2-minutes"
Start = Callable[..., Retrained]


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retraining, "MIN_ANSWERED", 1)
    monkeypatch.setattr(retraining, "POLL_SECONDS", 0.02)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A question with a correct and a wrong answer, and its snapshot."""
    with Store(settings.url) as opened:
        saved = opened.predictions.save_prediction(prediction("Who is it?", ["Ann", "Ben"], id="q"))
        opened.labels.judge(saved, 0, "Ada", "correct")
        opened.labels.judge(saved, 1, "Ada", "wrong")
        opened.exports.take_snapshot(settings.home / "snapshots")
        yield opened


class Commands:
    """Both commands: training leaves a checkpoint, evaluation a report whose F1 depends on who answers."""

    def __init__(self, gain: float = 0.3, fail: str = "") -> None:
        self.calls: list[str] = []
        self.arguments: dict[str, argparse.Namespace] = {}
        self.gain, self.fail, self.corpus = gain, fail, "starter"

    def __call__(self, command: list[str], environment: Mapping[str, str], log: Path, watch: Callable[[], None]) -> None:
        name = log.stem
        assert command[:3] == [sys.executable, "-m", "core"]
        arguments = parser().parse_args(command[3:])
        if self.fail == name:
            raise AmbiscopeError(f"{name} failed")
        self.calls.append(name)
        self.arguments[name] = arguments
        out = Path(arguments.out)
        watch()
        out.mkdir(parents=True, exist_ok=True)
        if name == "train":
            for folder in ("best", "last"):
                (out / folder).mkdir()
                (out / folder / "config.json").write_text("{}")
            (out / "log.jsonl").write_text('{"step": 3, "minutes": 0.5}\n')
            watch()
            return
        assert (name == "after") == environment["AMBISCOPE_ANSWERER"].endswith("best")
        rows = [
            evaluation_row(i, 0.2 + 0.01 * i + (self.gain * (1 + i % 2) if name == "after" else 0)) | {"references": []}
            for i in range(12)
        ]
        report = evaluation_report(()) | {"rows": rows, "n": 12, "measured": name}
        report["provenance"]["system"] |= {"corpus": self.corpus}
        (out / "report.json").write_text(json.dumps(report))


@pytest.fixture
def start(store: Store, settings: Settings) -> Start:
    def start(run: Any, progress: Any = lambda stage, share: None, snapshot: int = 1) -> Retrained:
        return retrain(store, settings, snapshot, 2.0, progress, run)

    return start


def test_a_better_model_is_kept_with_both_evaluations(store: Store, settings: Settings, start: Start) -> None:
    commands, steps = Commands(), []
    result = start(commands, progress=lambda stage, share: steps.append((stage, share)))
    assert commands.calls == ["train", "before", "after"]
    assert (result.verdict, result.questions, "better" in result.words()) == ("better", 1, True)
    main = result.difference.comparison
    assert (main.n, main.difference > 0.3, main.interval is not None) == (12, True, True)
    second, first = store.evaluations.evaluations()
    assert (first.id, second.id) == (result.before, result.after)
    assert (first.label, second.label) == ("before training on snapshot 1", "after training on snapshot 1")
    assert ("training", 0.25) in steps
    learned_from = settings.home / "snapshots" / "0001" / "training.jsonl"
    assert commands.arguments["train"].multi == [learned_from]
    after = commands.arguments["after"]
    assert (after.system, after.exclude[0], len(after.exclude)) == (
        "ambigprompt",
        learned_from,
        2,
    )  # also what is trained on beside it


@pytest.mark.parametrize(("gain", "verdict"), [(-0.3, "worse"), (0.0, "undecided")])
def test_a_model_may_be_worse_or_undecided(start: Start, gain: float, verdict: str) -> None:
    result = start(Commands(gain))
    assert result.verdict == verdict
    assert (result.checkpoint == "default") == ("is not kept" in result.words()) == (verdict == "worse")


def test_what_is_finished_is_not_repeated(store: Store, start: Start) -> None:
    commands = Commands()
    for step in ("train", "after"):
        commands.fail = step
        with pytest.raises(AmbiscopeError, match=f"{step} failed"):
            start(commands)
    assert store.evaluations.count_evaluations() == 0  # nothing half stored
    commands.fail = ""
    result = start(commands)
    assert commands.calls == ["train", "before", "after"]
    assert start(commands) == result  # nothing left to do
    assert store.evaluations.count_evaluations() == 2


def test_evaluations_over_other_passages_are_not_compared(store: Store, start: Start) -> None:
    commands = Commands(fail="after")
    with pytest.raises(AmbiscopeError, match="after failed"):
        start(commands)
    commands.fail, commands.corpus = "", "mine"
    with pytest.raises(InputError, match="evaluated on different passages"):
        start(commands)
    assert store.evaluations.count_evaluations() == 0


def test_a_damaged_report_is_made_again_once_it_is_deleted(settings: Settings, start: Start) -> None:
    commands = Commands()
    result, folder = start(commands), settings.runs_dir / FOLDER / "after"
    (folder / "report.json").write_text("{")
    with pytest.raises(FormatError, match=r"report\.json"):
        start(commands)
    shutil.rmtree(folder)
    assert start(commands) == result


def test_what_cannot_be_trained_on_is_refused_first(
    store: Store, settings: Settings, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands, folder = Commands(), settings.home / "snapshots"
    with pytest.raises(NotFoundError, match="no snapshot 9"):
        start(commands, snapshot=9)
    other = store.exports.take_snapshot(folder, formats=("csv",)).number
    with pytest.raises(InputError, match="has no training file"):
        start(commands, snapshot=other)
    saved = store.predictions.save_prediction(prediction("Where is it?", ["Natalie Wood"], id="w"))
    store.labels.judge(saved, 0, "Bob", "wrong")
    wrong_only = store.exports.take_snapshot(folder, filters=Filters(annotators=("Bob",))).number
    with pytest.raises(InputError, match="0 judged questions have a correct answer"):  # these alone teach no answering
        start(commands, snapshot=wrong_only)
    beside_right_ones = store.exports.take_snapshot(folder).number
    monkeypatch.setattr(retraining, "MIN_ANSWERED", 2)
    with pytest.raises(InputError, match="1 judged questions have a correct answer"):
        start(commands, snapshot=beside_right_ones)
    assert commands.calls == []
    monkeypatch.setattr(retraining, "MIN_ANSWERED", 1)
    assert start(commands, snapshot=beside_right_ones).questions == 2


# ---------------------------------------------------------------- the process


def command(tmp_path: Path, code: str, watch: Callable[[], None] = lambda: None) -> Path:
    log = tmp_path / "run" / "train.log"
    run_command([sys.executable, "-c", code], {}, log, watch)
    return log


def test_a_command_leaves_its_output_in_the_log(tmp_path: Path) -> None:
    assert command(tmp_path, "print('hello')").read_text() == "hello\n"
    with pytest.raises(AmbiscopeError, match=r"train failed \(exit 3\): error: no such weights"):
        command(tmp_path, "import sys; print('error: no such weights'); print('later'); sys.exit(3)")
    with pytest.raises(AmbiscopeError, match=r"failed \(exit 4\): it printed nothing"):  # not what the one before printed
        command(tmp_path, "import sys; sys.exit(4)")
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be written"):
        run_command([sys.executable, "-c", ""], {}, tmp_path / "file" / "log", lambda: None)


def test_a_stopped_training_ends_its_process(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    def watch() -> None:
        if mark.exists() and mark.read_text():
            raise CancelledError("stopped")

    code = f"import os, time, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid())); time.sleep(60)"
    with pytest.raises(CancelledError):
        command(tmp_path, code, watch)
    assert not Path(f"/proc/{mark.read_text()}").exists()
