"""The training loop over a network of one weight: what is the best, what is stopped, resumed and refused, what is shown."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from small_disks import resize, small_disk
from torch import Tensor, nn

from core.disk import locked
from core.errors import CancelledError, CheckpointError, ConflictError, InputError, StorageError
from core.models.scheduling import memory
from core.training.options import TrainConfig
from core.training.trainer import fit

Figures = Iterable[dict[str, float]]


class Killed(Exception):
    pass


class Numbers:
    """Fits weights to numbers, four groups a chunk.  `hook` is called with the number of each step, `figures` gives those of each evaluation."""

    def __init__(self, hook: Callable[[int], object] = lambda step: None, figures: Figures = ()) -> None:
        self.hook, self.figures, self.seen = hook, iter(figures), list[int]()
        self.clock = 0.0  # a minute a step

    def groups(self, seed: int, chunk: int) -> list[float]:
        return [4.0 * chunk + n for n in range(4)]

    def batch(self, group: float) -> Tensor:
        return torch.tensor([[group]])

    def loss(self, network: nn.Module, batch: Tensor, device: torch.device) -> Tensor:
        self.hook(len(self.seen) + 1)
        self.seen.append(int(batch))
        self.clock += 60.0
        return network(batch).sub(1.0).square().mean()  # type: ignore[no-any-return]

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        return next(self.figures, {})


def dying(at: int) -> Numbers:
    def hook(step: int) -> None:
        if step == at:
            raise Killed

    return Numbers(hook)


def write(network: Any, folder: Path, row: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "weights.json").write_text(json.dumps({"step": row["step"], "w": network[0].weight.flatten().tolist()}))


def go(out: Path, task: Numbers, identity: dict[str, Any] | None = None, width: int = 1, **changes: Any) -> list[str]:
    """The output."""
    values: dict[str, Any] = {"steps": 9, "warmup": 1, "evaluate_every": 3, "save_minutes": 4.0, **changes}
    config, lines = TrainConfig(precision="fp32", device="cpu", **values), list[str]()
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(1, width), nn.Dropout(0.5))  # so that the random numbers count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.training.trainer.monotonic", lambda: task.clock)
        fit(network, task, config, out, write, lines.append, identity)
    return lines


def weights(out: Path, name: str) -> dict[str, Any]:
    return json.loads((out / name / "weights.json").read_text())  # type: ignore[no-any-return]


def logged(out: Path, field: str) -> list[float]:
    return [json.loads(line)[field] for line in (out / "log.jsonl").read_text().splitlines()]


def test_without_held_out_questions_the_best_weights_are_the_last(tmp_path: Path) -> None:
    go(tmp_path / "none", Numbers())
    assert weights(tmp_path / "none", "best") == weights(tmp_path / "none", "last")
    go(tmp_path / "some", Numbers(figures=[{"figure": f} for f in (0.1, 0.3, 0.2, 0.3)]))
    steps = [weights(tmp_path / "some", name)["step"] for name in ("best", "last")]
    assert steps == [6, 9]  # as good again is no better


def test_the_clock_ends_a_run(tmp_path: Path) -> None:
    go(tmp_path, Numbers(), steps=10_000, minutes=4.5)
    assert logged(tmp_path, "step") == [3, 5]


def check_the_rest(tmp_path: Path, at: int) -> None:
    """Goes on with tmp_path/cut, whose state is that of step `at`, and compares with a run that was not stopped."""
    rest = Numbers()
    go(tmp_path / "whole", Numbers())
    assert not (tmp_path / "cut" / "last").exists()
    first_line, *_ = go(tmp_path / "cut", rest)
    assert re.fullmatch(rf"resumed at step {at} of 9, after {at}\.0 minutes of training", first_line)
    assert rest.seen == list(range(at, 9))  # in the middle of a chunk
    for read, names in ((weights, ("best", "last")), (logged, ("step", "loss"))):
        cut, whole = ([read(tmp_path / run, name) for name in names] for run in ("cut", "whole"))
        assert cut == whole


def test_a_killed_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        go(tmp_path / "cut", dying(9), save_minutes=5.0)
    assert logged(tmp_path / "cut", "step") == [3, 6]
    with (tmp_path / "cut" / "log.jsonl").open("a") as file:
        file.write('{"step": 7, "mi')  # cut by the kill
    check_the_rest(tmp_path, 5)


@pytest.mark.parametrize(("number", "in_figures", "at"), [(signal.SIGTERM, False, 7), (signal.SIGINT, True, 3)])
def test_a_run_that_is_told_to_end_goes_on_to_the_same_weights(
    tmp_path: Path, number: signal.Signals, in_figures: bool, at: int
) -> None:
    """Figures take minutes: they are given up at once, and made when the run goes on."""
    before = signal.getsignal(number)

    def stop(step: int = at) -> None:
        if step == at:
            os.kill(os.getpid(), number)
            while signal.getsignal(number) is not before:  # the trainer gives the handler back when it has heard one
                time.sleep(0.01)

    def figures() -> Figures:
        stop()
        yield {}

    with pytest.raises(CancelledError, match=rf"stopped \({number.name}\) and saved at step {at} in .*/cut: run the same"):
        go(tmp_path / "cut", Numbers(figures=figures()) if in_figures else Numbers(stop))
    check_the_rest(tmp_path, at)
    assert signal.getsignal(number) is before


def test_a_kill_between_the_renames_loses_nothing(tmp_path: Path) -> None:
    go(tmp_path, Numbers())
    (tmp_path / "state").rename(tmp_path / "state-before")
    (tmp_path / "state-new").mkdir()
    assert go(tmp_path, Numbers())[0].startswith("resumed at step 9 of 9, after ")


def test_an_earlier_run_without_a_state_is_told(tmp_path: Path) -> None:
    with locked(tmp_path, "a training"):
        (tmp_path / "log.jsonl").write_text('{"step": 3, "loss": 1.0}\n{"st')
    assert go(tmp_path, Numbers())[0] == f"{tmp_path}: an earlier run ended before its state was saved; starting again"
    assert logged(tmp_path, "step") == [3, 6, 9, 9]


def test_a_run_of_other_inputs_or_settings_is_refused(tmp_path: Path) -> None:
    identity = {"multi": [{"size": 3, "sha256": "ab"}], "context": 6}
    go(tmp_path, Numbers(), identity)
    assert json.loads((tmp_path / "config.json").read_text())["identity"]["context"] == 6
    go(tmp_path, Numbers(), identity, save_minutes=7.0, log_with="tensorboard", evaluate_every=2)  # they are no other run
    with pytest.raises(InputError, match=r"holds a run with other settings \(multi\)"):
        go(tmp_path, Numbers(), {**identity, "multi": [{"size": 3, "sha256": "cd"}]})
    with pytest.raises(InputError, match=r"other settings \(seed\)"):
        go(tmp_path, Numbers(), identity, seed=7)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.bin", "position.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda file: os.truncate(file, 20)], ids=["gone", "cut"])
def test_a_damaged_state_is_a_checkpoint_error(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    go(tmp_path, Numbers())
    damage(tmp_path / "state" / name)
    with pytest.raises(CheckpointError, match="damaged or of another network"):
        go(tmp_path, Numbers())


def test_a_full_disk_keeps_the_state_saved_before(tmp_path: Path) -> None:
    often: dict[str, Any] = {"width": 5000, "save_minutes": 0.0, "evaluate_every": 100}
    with small_disk(tmp_path / "small", 4096) as disk:
        message = r"the state of step 3 cannot be saved in .* free in .*; the state saved before is kept"
        with pytest.raises(StorageError, match=message):
            go(disk / "run", Numbers(lambda step: resize(disk, 200) if step == 3 else None), **often)
        assert not (disk / "run" / "state-new").exists()
        resize(disk, 4096)
        assert go(disk / "run", Numbers(), **often)[0].startswith("resumed at step 2 of 9, after ")


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    refusals: list[BaseException | None] = []

    def hook(step: int) -> None:
        if step == 2:
            with ThreadPoolExecutor() as pool:
                refusals.append(pool.submit(go, tmp_path, Numbers()).exception())

    go(tmp_path, Numbers(hook))
    (refusal,) = refusals
    assert isinstance(refusal, ConflictError)
    assert f"{tmp_path} is in use: a training in process {os.getpid()} on " in str(refusal)


def test_freed_memory_is_given_back_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a run over rows of ever new sizes grew by 1 MB a step."""
    trims: list[int] = []
    monkeypatch.setattr(memory, "trim", lambda: trims.append(1))
    go(tmp_path, Numbers(), steps=2 * memory.TRIM_STEPS + 1, evaluate_every=500, save_minutes=500.0)
    assert len(trims) == 2


def test_the_heap_is_trimmed_where_the_c_library_can() -> None:
    glibc = sys.platform.startswith("linux") and platform.libc_ver()[0] == "glibc"
    assert memory.trim() is glibc


def scalars(out: Path, name: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(out / "logs" / "ambiscope"))
    events.Reload()
    return [(e.step, e.value) for e in events.Scalars(name)]


def test_what_was_sent_and_then_lost_is_shown_once(tmp_path: Path) -> None:
    sent: dict[str, Any] = {"log_with": "tensorboard", "save_minutes": 100.0}
    with pytest.raises(Killed):
        go(tmp_path, dying(7), **sent)
    assert [step for step, _ in scalars(tmp_path, "loss")] == [3, 6]
    go(tmp_path, Numbers(figures=[{"figure": 0.5}] * 4), **sent)  # no state was saved: from the start
    losses = {step: loss for step, loss in zip(logged(tmp_path, "step"), logged(tmp_path, "loss")) if loss is not None}
    assert [step for step, _ in scalars(tmp_path, "loss")] == [3, 6, 9]
    assert dict(scalars(tmp_path, "loss")) == pytest.approx(losses)
    assert dict(scalars(tmp_path, "figure")) == pytest.approx({3: 0.5, 6: 0.5, 9: 0.5})


def test_a_tracker_that_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="'mlflow'; use one of tensorboard, trackio, wandb"):
        TrainConfig(log_with="mlflow")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="--log-with wandb needs a package that is not installed: pip install wandb"):
        TrainConfig(log_with="wandb")
