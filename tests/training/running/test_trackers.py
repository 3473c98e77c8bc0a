"""Losses sent to a tracker: they arrive, once each after a resume, and a missing package is one line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from stopped_training import Task
from torch import Tensor, nn

from core.errors import InputError
from core.training.options import TrainConfig
from core.training.trainer import fit


def train(out: Path, task: Task) -> None:
    config = TrainConfig(steps=6, evaluate_every=2, precision="fp32", device="cpu", log_with="tensorboard")
    fit(nn.Linear(2, 1), task, config, out, lambda network, folder, row: folder.mkdir(exist_ok=True), lambda _: None)


def scalars(out: Path, name: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(out / "logs" / "ambiscope"))
    events.Reload()
    return [(e.step, e.value) for e in events.Scalars(name)]


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


def test_what_was_logged_and_then_lost_is_shown_once(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(tmp_path, DyingTask())
    assert [step for step, _ in scalars(tmp_path, "loss")] == [2, 4]
    train(tmp_path, NamedTask())  # no state was saved: from the start
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    losses = {row["step"]: row["loss"] for row in rows if row["loss"] is not None}
    assert [step for step, _ in scalars(tmp_path, "loss")] == [2, 4, 6]
    assert dict(scalars(tmp_path, "loss")) == pytest.approx(losses)
    assert dict(scalars(tmp_path, "figure")) == pytest.approx({2: 0.5, 4: 0.5, 6: 0.5})


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'mlflow'; use one of tensorboard, trackio, wandb"):
        TrainConfig(log_with="mlflow")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="--log-with wandb needs a package that is not installed: pip install wandb"):
        TrainConfig(log_with="wandb")
