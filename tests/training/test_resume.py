"""The training loop over a network of one weight: what is the best, what is resumed, what is refused, what is shown."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from core.errors import CheckpointError, InputError
from core.models.scheduling import memory
from core.training.options import TrainConfig
from core.training.trainer import fit


class Killed(Exception):
    pass


class Numbers:
    """Fits a weight to numbers, four groups a chunk; dies at the step `die_at`; `figures` are handed out one by one."""

    def __init__(self, die_at: int = -1, figures: list[dict[str, float]] | None = None) -> None:
        self.die_at, self.figures, self.seen = die_at, figures, []  # type: ignore[var-annotated]
        self.clock = 0.0  # a minute a step

    def groups(self, seed: int, chunk: int) -> list[float]:
        return [4.0 * chunk + n for n in range(4)]

    def batch(self, group: float) -> Tensor:
        return torch.tensor([[group]])

    def loss(self, network: nn.Module, batch: Tensor, device: torch.device) -> Tensor:
        if len(self.seen) == self.die_at:
            raise Killed
        self.seen.append(int(batch))
        self.clock += 60.0
        return network(batch).sub(1.0).square().mean()  # type: ignore[no-any-return]

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        return self.figures.pop(0) if self.figures else {}


class OneWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)
        nn.init.constant_(self.layer.weight, 0.5)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)  # type: ignore[no-any-return]


def write(network: nn.Module, folder: Path, row: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "weight.json").write_text(json.dumps({"step": row["step"], "w": network.layer.weight.item()}))  # type: ignore[union-attr, operator]


def go(out: Path, task: Numbers, identity: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"steps": 9, "warmup": 1, "evaluate_every": 3, "save_minutes": 4.0, **changes}
    config = TrainConfig(precision="fp32", device="cpu", **values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.training.trainer.monotonic", lambda: task.clock)
        return fit(OneWeight(), task, config, out, write, lambda _: None, identity)


def weights(out: Path, name: str) -> dict[str, Any]:
    return json.loads((out / name / "weight.json").read_text())  # type: ignore[no-any-return]


def logged(out: Path, field: str) -> list[float]:
    return [json.loads(line)[field] for line in (out / "log.jsonl").read_text().splitlines()]


def test_without_held_out_questions_the_best_weights_are_the_last(tmp_path: Path) -> None:
    go(tmp_path / "none", Numbers())
    assert weights(tmp_path / "none", "best") == weights(tmp_path / "none", "last")
    figures = [{"figure": f} for f in (0.1, 0.3, 0.2, 0.3)]
    go(tmp_path / "some", Numbers(figures=figures))
    steps = [weights(tmp_path / "some", name)["step"] for name in ("best", "last")]
    assert steps == [6, 9]  # as good again is no better


def test_the_clock_ends_a_run(tmp_path: Path) -> None:
    assert go(tmp_path, Numbers(), steps=10_000, minutes=4.5)["step"] == 5


def test_a_resumed_run_is_the_run_that_was_not_killed(tmp_path: Path) -> None:
    whole, killed, rest = Numbers(), Numbers(die_at=7), Numbers()
    go(tmp_path / "whole", whole, save_minutes=2.0)
    with pytest.raises(Killed):
        go(tmp_path / "killed", killed, save_minutes=2.0, evaluate_every=7)  # refused below: not the same settings
    with pytest.raises(InputError, match=r"other settings \(evaluate_every\)"):
        go(tmp_path / "killed", rest, save_minutes=2.0)
    with pytest.raises(Killed):
        go(tmp_path / "cut", Numbers(die_at=8), save_minutes=5.0)
    assert logged(tmp_path / "cut", "step") == [3, 6]
    with (tmp_path / "cut" / "log.jsonl").open("a") as file:
        file.write('{"step": 7, "mi')  # cut by the kill
    go(tmp_path / "cut", rest, save_minutes=5.0)
    assert killed.seen == list(range(7))
    assert rest.seen == list(range(5, 9))  # in the middle of a chunk
    assert logged(tmp_path / "cut", "step") == [3, 6, 9, 9]
    assert logged(tmp_path / "cut", "loss") == logged(tmp_path / "whole", "loss")
    assert weights(tmp_path / "cut", "last") == weights(tmp_path / "whole", "last")


def test_a_run_of_other_inputs_is_refused(tmp_path: Path) -> None:
    identity = {"multi": [{"size": 3, "sha256": "ab"}], "context": 6}
    go(tmp_path, Numbers(), identity)
    assert json.loads((tmp_path / "config.json").read_text())["identity"]["context"] == 6
    go(tmp_path, Numbers(), identity)
    with pytest.raises(InputError, match=r"holds a run with other settings \(multi\)"):
        go(tmp_path, Numbers(), {**identity, "multi": [{"size": 3, "sha256": "cd"}]})


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.bin", "position.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: os.truncate(file, 20)], ids=["gone", "cut"])
def test_a_damaged_state_is_a_checkpoint_error(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    go(tmp_path, Numbers())
    damage(tmp_path / "state" / name)
    with pytest.raises(CheckpointError, match="damaged or of another network"):
        go(tmp_path, Numbers())


def test_freed_memory_is_given_back_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a run over rows of ever new sizes grew by 1 MB a step."""
    trims: list[int] = []
    monkeypatch.setattr(memory, "trim", lambda: trims.append(1))
    go(tmp_path, Numbers(), steps=2 * memory.TRIM_STEPS + 1, evaluate_every=500, save_minutes=500.0)
    assert len(trims) == 2


def test_the_heap_is_trimmed_where_the_c_library_can() -> None:
    glibc = sys.platform.startswith("linux") and platform.libc_ver()[0] == "glibc"
    assert memory.trim() is glibc
