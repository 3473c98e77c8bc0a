"""A small training that can be told to end; a program too: `python tests/fakes/stopped_training.py FOLDER step|figures`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from core.training.options import TrainConfig
from core.training.trainer import fit


class Task:
    """Two weights with dropout, so that the random numbers count.  It says "waiting" in a step or in its figures until a signal came; with
    `send` it sends that itself."""

    def __init__(self, where: str = "", send: signal.Signals | None = None) -> None:
        self.where, self.send = where, send

    def groups(self, seed: int, chunk: int) -> list[int]:
        return [chunk + 1]

    def batch(self, group: int) -> Tensor:
        return torch.tensor([[group / 10.0, 1.0]])

    def loss(self, network: nn.Module, batch: Tensor, device: torch.device) -> Tensor:
        if self.where == "step" and 0.65 < float(batch[0, 0]) < 0.75:
            self.wait()
        return network(batch).sub(1.0).square().mean()  # type: ignore[no-any-return]

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        if self.where == "figures":
            self.wait()
        return {"figure": -float(network[0].weight.detach().abs().sum())}  # type: ignore[index, union-attr]

    def wait(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        if self.send is not None:
            os.kill(os.getpid(), self.send)
        print("waiting", flush=True)
        while signal.getsignal(signal.SIGTERM) is before:  # the trainer gives the handler back when it has heard one
            time.sleep(0.01)


def save(network: Any, folder: Path, row: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "weights.json").write_text(json.dumps({"step": row["step"], "w": network[0].weight.flatten().tolist()}))


def train(out: Path, task: Task) -> list[str]:
    """What it said."""
    messages: list[str] = []
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))
    config = TrainConfig(steps=12, warmup=2, evaluate_every=5, precision="fp32", device="cpu", lr=0.01, head_lr=0.01)
    fit(network, task, config, out, save, messages.append)
    return messages


if __name__ == "__main__":
    from core.errors import AmbiscopeError

    try:
        train(Path(sys.argv[1]), Task(sys.argv[2]))
    except AmbiscopeError as error:
        print(f"error: {error}")
        sys.exit(error.exit_code)
