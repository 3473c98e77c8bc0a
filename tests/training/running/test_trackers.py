"""Losses sent to a tracker: they arrive, once each after a resume, and a missing package is one line."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from stopped_training import Task
from torch import Tensor, nn

from core.errors import InputError
from core.training.options import TrainConfig
from core.training.trainer import fit


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
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    losses = {row["step"]: row["loss"] for row in rows if row["loss"] is not None}
    assert [step for step, _ in scalars(tmp_path, "loss")] == [2, 4, 6]
    assert dict(scalars(tmp_path, "loss")) == pytest.approx(losses)
    assert dict(scalars(tmp_path, "figure")) == pytest.approx({2: 0.5, 4: 0.5, 6: 0.5})


def test_what_is_missing_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="'mlflow'; use one of tensorboard, trackio, wandb"):
        TrainConfig(log_with="mlflow")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="--log-with wandb needs a package that is not installed: pip install wandb"):
        TrainConfig(log_with="wandb")
