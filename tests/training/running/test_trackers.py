"""Losses sent to a tracker: they arrive, once each after a resume, and nothing of a tracker is imported unless it is asked for."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from stopped_training import Task
from torch import Tensor, nn

from core import cli
from core.errors import InputError
from core.settings import ROOT
from core.training.trainer import TrainConfig, fit


def train(out: Path, steps: int, log_with: str = "tensorboard") -> None:
    def save(network: nn.Module, folder: Path, row: dict[str, Any]) -> None:
        folder.mkdir(exist_ok=True)

    config = TrainConfig(steps=steps, evaluate_every=2, precision="fp32", device="cpu", log_with=log_with)
    fit(nn.Linear(2, 1), Task(), config, out, save, lambda _: None)


def scalars(out: Path, name: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(out / "logs" / "ambiscope"))
    found.Reload()
    return [(e.step, e.value) for e in found.Scalars(name)]


class NamedTask(Task):
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        return {"figure": 0.5}


class Killed(Exception):
    pass


class DyingTask(NamedTask):
    def loss(self, network: nn.Module, batch: Tensor, device: torch.device) -> Tensor:
        if float(batch[0, 0]) > 0.45:  # the fifth step
            raise Killed
        return super().loss(network, batch, device)


def test_what_was_logged_and_then_lost_is_shown_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Task", DyingTask)
    with pytest.raises(Killed):
        train(tmp_path, 6)
    assert [step for step, _ in scalars(tmp_path, "loss")] == [2, 4]
    monkeypatch.setattr(sys.modules[__name__], "Task", NamedTask)
    train(tmp_path, 6)  # no state was saved: from the start
    assert [step for step, _ in scalars(tmp_path, "loss")] == [2, 4, 6]


def test_losses_arrive_in_the_event_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Task", NamedTask)
    train(tmp_path, 6)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    losses = [(row["step"], row["loss"]) for row in rows if row["loss"] is not None]
    assert [step for step, _ in losses] == [2, 4, 6]
    found = scalars(tmp_path, "loss")
    assert [step for step, _ in found] == [2, 4, 6]
    assert [value for _, value in found] == pytest.approx([loss for _, loss in losses])
    assert dict(scalars(tmp_path, "figure")) == pytest.approx({2: 0.5, 4: 0.5, 6: 0.5})


def test_where_it_is_logged_does_not_make_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "Task", NamedTask)
    train(tmp_path, 4, log_with="")
    assert not (tmp_path / "logs").exists()
    train(tmp_path, 4)
    assert (tmp_path / "logs").exists()


def test_what_is_missing_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="'mlflow'; use one of tensorboard, trackio, wandb"):
        TrainConfig(log_with="mlflow")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="--log-with wandb needs a package that is not installed: pip install wandb"):
        TrainConfig(log_with="wandb")


def test_no_tracker_is_imported_unless_asked_for() -> None:
    code = "import sys, core.training.trainer as t; t.TrainConfig(); print([m for m in ('tensorboard', 'wandb', 'trackio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0)


def test_the_option_is_there() -> None:
    assert cli.parser().parse_args(["train", "reader", "--log-with", "trackio"]).log_with == "trackio"
