"""A training that is told to end, or whose disk is full: saved, said, gone on with to the same weights."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from small_disks import resize, small_disk
from stopped_training import Task, train
from torch import Tensor, nn

from core.disk import locked
from core.errors import CancelledError, ConflictError, StorageError
from core.settings import ROOT
from core.training.options import TrainConfig
from core.training.trainer import fit


def rows(out: Path) -> list[tuple[int, object]]:
    lines = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    return [(row["step"], row["loss"]) for row in lines]


def check_the_rest(tmp_path: Path, at: int) -> None:
    """Goes on with tmp_path/cut, which was stopped after `at` steps, and compares with a run that was not."""
    train(tmp_path / "whole", Task())
    assert not (tmp_path / "cut" / "last").exists()
    first_line, *_ = train(tmp_path / "cut", Task())
    assert re.fullmatch(rf"resumed at step {at} of 12, after \d+\.\d minutes of training", first_line)
    for name in ("best", "last"):
        cut, whole = ((tmp_path / run / name / "weights.json").read_text() for run in ("cut", "whole"))
        assert cut == whole
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")


def test_a_process_that_is_told_to_end_saves_and_the_next_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "tests" / "fakes" / "stopped_training.py"), str(tmp_path / "cut"), "step"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGTERM)
        output, code = process.stdout.read(), process.wait()
    message = (
        f"the training was stopped (SIGTERM) and saved at step 7 in {tmp_path / 'cut'}: run the same command again to resume"
    )
    assert (code, output) == (CancelledError.exit_code, f"error: {message}\n")
    check_the_rest(tmp_path, 7)


@pytest.mark.parametrize(("where", "at"), [("step", 7), ("figures", 5)])
def test_ctrl_c_in_a_step_or_in_the_figures(tmp_path: Path, where: str, at: int) -> None:
    """Figures take minutes: they are given up at once, and made when the run goes on."""
    with pytest.raises(CancelledError, match=rf"stopped \(SIGINT\) and saved at step {at} in "):
        train(tmp_path / "cut", Task(where, signal.SIGINT))
    check_the_rest(tmp_path, at)


class Steps(Task):
    """`hook` is called before each step."""

    def __init__(self, hook: Callable[[int], object] = lambda step: None) -> None:
        super().__init__()
        self.hook, self.count = hook, 0

    def loss(self, network: nn.Module, batch: Tensor, device: torch.device) -> Tensor:
        self.count += 1
        self.hook(self.count)
        return super().loss(network, batch, device)

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        return {}


def go(out: Path, task: Steps, **changes: Any) -> list[str]:
    """What it logs; the weights have some size."""
    lines: list[str] = []
    torch.manual_seed(0)
    config = TrainConfig(steps=4, warmup=1, precision="fp32", device="cpu", **changes)
    fit(nn.Linear(2, 3300), task, config, out, lambda *_: None, lines.append)  # type: ignore[arg-type]
    return lines


def saved(out: Path) -> int:
    return int(json.loads((out / "state" / "position.json").read_text())["step"])


def test_a_full_disk_keeps_the_state_saved_before(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 4096) as disk:
        out = disk / "run"

        def fill(count: int) -> None:
            if count == 3:
                resize(disk, 200)

        message = r"the state of step 3 cannot be saved in .* free in .*; the state saved before is kept"
        with pytest.raises(StorageError, match=message):
            go(out, Steps(fill), save_minutes=0.0)
        assert saved(out) == 2
        assert not (out / "state-new").exists()
        resize(disk, 4096)
        assert go(out, Steps(), save_minutes=0.0)[0].startswith("resumed at step 2 of 4, after ")
        assert saved(out) == 4


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    refusals: list[BaseException | None] = []

    def hook(count: int) -> None:
        if count == 2:
            with ThreadPoolExecutor() as pool:
                refusals.append(pool.submit(go, tmp_path, Steps()).exception())

    go(tmp_path, Steps(hook))
    (refusal,) = refusals
    assert isinstance(refusal, ConflictError)
    assert f"{tmp_path} is in use: a training in process {os.getpid()} on " in str(refusal)
    assert go(tmp_path, Steps())[0].startswith("resumed at step 4")


def test_an_earlier_run_without_a_state_is_told(tmp_path: Path) -> None:
    with locked(tmp_path, "a training"):
        (tmp_path / "log.jsonl").write_text('{"step": 3, "loss": 1.0}\n{"st')
    assert go(tmp_path, Steps())[0] == f"{tmp_path}: an earlier run ended before its state was saved; starting again"
    assert [step for step, _ in rows(tmp_path)] == [4]


def test_how_often_the_state_is_saved_and_where_it_is_logged_is_no_other_run(tmp_path: Path) -> None:
    go(tmp_path, Steps(), save_minutes=0.0)
    go(tmp_path, Steps(), save_minutes=7.0, log_with="tensorboard")


def test_signals_are_as_they_were_afterwards(tmp_path: Path) -> None:
    before = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)]
    go(tmp_path, Steps())
    assert [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)] == before
