"""The training loop: resumable and logged, on CPU or CUDA, with bf16 autocast where it is native and several GPUs through accelerate.

A run folder holds config.json (settings, and what identifies the run's inputs), log.jsonl (losses and held-out
figures), state/ (weights, optimizer, position), and best/ and last/ (weights only).  The state is saved at intervals,
at the end and when a signal arrives.  The folder is locked while a run uses it.
"""

from __future__ import annotations

import json
import math
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from pickle import UnpicklingError
from time import monotonic
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from core import disk
from core.errors import CancelledError, CheckpointError, StorageError
from core.models.encoders.low_rank import cast_frozen
from core.models.loading.pretrained import reason
from core.models.scheduling import memory
from core.models.scheduling.device import native_bf16
from core.training.data.chunks import Grouped, batches
from core.training.options import TrainConfig
from core.training.trackers import start_tracker, stop_trackers

# what loading a damaged state raises
DAMAGE_ERRORS = (
    OSError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    UnpicklingError,
    SafetensorError,
)
RESUME_HINT = "free some space and start again to resume"


class TrainingTask(Grouped, Protocol):
    """The thing to train: batches, a loss, and a held-out figure."""

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """The mean loss of a batch, a scalar."""
        ...

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Held-out figures.  "figure" selects the best weights; higher is better.  {} without held-out data."""
        ...


def parameter_groups(network: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """The optimizer's two groups: the encoder, and new weights, which have a higher learning rate.

    Embeddings are frozen, so that the checkpoint can leave them out (11M of 22M parameters).
    """
    groups: list[dict[str, Any]] = [{"params": [], "lr": config.lr}, {"params": [], "lr": config.head_lr}]
    for name, parameter in network.named_parameters():
        if ".embeddings." in name:
            parameter.requires_grad_(False)
        else:
            groups[0 if name.startswith("encoder.") else 1]["params"].append(parameter)
    return groups


def _rate(step: int, elapsed: float, config: TrainConfig) -> float:
    progress = max(step / config.steps, elapsed / (60 * config.minutes) if config.minutes else 0.0)
    return min(1.0, (step + 1) / max(1, config.warmup)) * max(0.02, 1.0 - progress)


def check_settings(out: Path, settings: dict[str, Any]) -> None:
    """Raises InputError if the run in a folder has other settings."""
    try:
        earlier = dict(json.loads((out / "config.json").read_text()))
    except (ValueError, TypeError):
        earlier = {}
    # how often it is evaluated and saved, where it is logged and who makes the batches do not affect training
    unrelated = ("identity", "evaluate_every", "save_minutes", "log_with", "workers")
    ours = {name: value for name, value in settings.items() if name not in unrelated}
    disk.check_same_run(out, {**earlier, **earlier.get("identity", {})}, {**ours, **settings["identity"]})


def _claim(out: Path, settings: dict[str, Any]) -> None:
    """Writes config.json.  Raises InputError if the folder has the state of a run with other settings."""
    config_file = out / "config.json"
    if config_file.exists() and any((out / name).exists() for name in ("state", "state-before")):
        check_settings(out, settings)
    disk.write_json(config_file, settings, RESUME_HINT)


def _cut(log_file: Path, step: int) -> None:
    """Truncates the log to the saved step.  Later steps are repeated and logged again."""
    if not log_file.exists():
        return
    lines = []
    for line in log_file.read_text().splitlines():
        try:
            if json.loads(line)["step"] <= step:
                lines.append(line + "\n")
        except (ValueError, KeyError, TypeError):  # an incomplete row
            continue
    disk.write_text(log_file, "".join(lines), RESUME_HINT)


def _load(accelerator: Any, state: Path) -> dict[str, Any]:
    """Loads a saved state's weights, optimizer and random numbers, and returns its position.json.  Raises CheckpointError."""
    try:
        saved = json.loads((state / "position.json").read_text())
        accelerator.load_state(str(state))
        position = int(saved["positions"][accelerator.process_index])
        return {"position": position, **{name: saved[name] for name in ("step", "elapsed", "best", "losses", "judged")}}
    except DAMAGE_ERRORS as error:
        raise CheckpointError(
            f"{state} is damaged or of another network ({reason(error)}); delete it to start again, or name another folder with --out"
        ) from None


def _bf16(config: TrainConfig) -> bool:
    if config.precision != "auto":
        return config.precision == "bf16"
    on_gpu = config.device != "cpu" and torch.cuda.is_available()
    return native_bf16(torch.device("cuda" if on_gpu else "cpu"))


class _StopRequested(Exception):
    """A signal requested the run to stop."""


class _Signals:
    """Handles SIGTERM and SIGINT in its context: the first requests a stop, the second has its normal effect.

    Signals are only handled in the main thread.  While `interruptible` is True (no saved state is changing), the first signal raises _StopRequested at once.
    """

    def __init__(self) -> None:
        self.name, self.interruptible = "", False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def _on_signal(self, number: int, _frame: object) -> None:
        self.name = signal.Signals(number).name
        self.__exit__()
        if self.interruptible:
            raise _StopRequested


def fit(
    network: nn.Module,
    task: TrainingTask,
    config: TrainConfig,
    out: Path,
    save: Callable[[nn.Module, Path, dict[str, Any]], None],
    log: Callable[[str], None] = print,
    identity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Trains until `steps` or `minutes` is reached, and returns the last log row.

    Resumes a run folder that has the same config and identity.  At SIGTERM or SIGINT it finishes the step, saves the state and raises CancelledError.

    `save`: writes (network, folder, log row) as a checkpoint.  `identity`: what else identifies this run, as JSON
    values: arguments and digests of input files.  Without held-out data, the best weights are the last.

    Raises InputError if `out` holds a run of another config or identity, ConflictError while another run writes there, CheckpointError if its state cannot
    be loaded, and StorageError if the disk refuses; the last saved state stays intact.
    """
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs

    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans every new shape for 10 ms, and hardly two batches have one shape
    accelerator = Accelerator(
        mixed_precision="bf16" if _bf16(config) else "no",
        cpu=config.device == "cpu",
        log_with=config.log_with or None,
        project_dir=out / "logs" if config.log_with else None,
        # a batch without a prompt, or of [EOI] only, leaves some weights without a gradient
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    with disk.locked(out, "a training") if accelerator.is_main_process else nullcontext():
        return _Run(accelerator, network, task, config, out, save, log, identity).to_the_end()


class _Run:
    """One training run in its locked folder: position, log, saved state, and steps."""

    def __init__(
        self,
        accelerator: Any,
        network: nn.Module,
        task: TrainingTask,
        config: TrainConfig,
        out: Path,
        save: Callable[[nn.Module, Path, dict[str, Any]], None],
        log: Callable[[str], None],
        identity: Mapping[str, Any] | None,
    ) -> None:
        from tqdm import tqdm

        self.accelerator, self.task, self.config, self.out, self.save, self.log = accelerator, task, config, out, save, log
        self.main = accelerator.is_main_process
        self.state, self.aside, self.log_file = out / "state", out / "state-before", out / "log.jsonl"
        if self.main:
            _claim(out, {**asdict(config), "processes": accelerator.num_processes, "identity": dict(identity or {})})
            if not self.state.exists() and self.aside.exists():  # a kill between the two renames of `_store`
                self.aside.rename(self.state)
        accelerator.wait_for_everyone()

        torch.manual_seed(config.seed)
        if accelerator.mixed_precision == "bf16":
            cast_frozen(network, torch.bfloat16)
        self.groups = parameter_groups(network, config)
        self.rates = [group["lr"] for group in self.groups]
        optimizer = torch.optim.AdamW(self.groups, weight_decay=config.weight_decay, foreach=True)
        self.step, self.position, self.elapsed_before, self.best, self.judged = 0, 0, 0.0, -math.inf, 0
        self.losses: list[float] = []
        self.model, self.optimizer = accelerator.prepare(network, optimizer)
        if self.state.exists():
            saved = _load(accelerator, self.state)
            self.step, self.position, self.losses = saved["step"], saved["position"], saved["losses"]
            self.elapsed_before, self.best, self.judged = saved["elapsed"], saved["best"], saved["judged"]
        quiet = not (self.main and sys.stderr.isatty())
        self.bar = tqdm(total=config.steps, initial=self.step, unit="step", file=sys.stderr, disable=quiet)
        if self.main:
            if self.step:
                log(f"resumed at step {self.step} of {config.steps}, after {self.elapsed_before / 60:.1f} minutes of training")
            elif self.log_file.exists():
                log(f"{out}: an earlier run ended before its state was saved; starting again")
            _cut(self.log_file, self.step)
        if config.log_with:
            start_tracker(accelerator, config.log_with, out, asdict(config), self.step)
        self.started, self.saved_at, self.signals = monotonic(), self.elapsed_before, _Signals()

    # ---------------------------------------------------------------- the clock and the log

    def _agreed(self) -> tuple[float, str]:
        """The main process's elapsed seconds and signal: all processes must agree on rates and on the end."""
        from accelerate.utils import broadcast_object_list

        seconds, name = broadcast_object_list([self.elapsed_before + monotonic() - self.started, self.signals.name])
        return float(seconds), str(name)

    def _elapsed(self) -> float:
        return self._agreed()[0]

    def _record(self, figures: dict[str, float] | None, now: float) -> dict[str, Any]:
        """Writes and returns the log row of this step."""
        mean = sum(self.losses) / len(self.losses) if self.losses else None
        entry = {"step": self.step, "minutes": round(now / 60, 2), "loss": mean, **(figures or {})}
        if self.main:
            disk.append_line(self.log_file, json.dumps(entry) + "\n", RESUME_HINT)
            self.bar.clear()
            self.log(" ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()))
            self.bar.refresh()
        if self.accelerator.trackers:
            numbers = {name: value for name, value in entry.items() if name != "step" and value is not None}
            self.accelerator.log(numbers, step=self.step)
        self.losses.clear()
        return entry

    # ---------------------------------------------------------------- state and weights on disk

    def _store(self, now: float) -> None:
        """Saves the state next to the old one and then replaces it, so that a kill leaves one complete state.  Raises
        StorageError."""
        from accelerate.utils import gather_object

        new_state = self.out / "state-new"
        if self.main:
            shutil.rmtree(new_state, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        position: dict[str, Any] = {"step": self.step, "elapsed": now, "best": self.best}
        position |= {"losses": self.losses, "judged": self.judged, "positions": gather_object([self.position])}
        try:
            self.accelerator.save_state(str(new_state))  # each process its random numbers, the main one everything else
            self.accelerator.wait_for_everyone()
            if self.main:
                disk.write_text(new_state / "position.json", json.dumps(position), RESUME_HINT)  # the best figure may be -inf
                shutil.rmtree(self.aside, ignore_errors=True)
                if self.state.exists():
                    self.state.rename(self.aside)
                new_state.rename(self.state)
                shutil.rmtree(self.aside, ignore_errors=True)
        # torch and safetensors raise their own errors for a full disk
        except (OSError, RuntimeError, SafetensorError, StorageError) as error:
            reason = disk.describe_error(error, self.out)
            shutil.rmtree(new_state, ignore_errors=True)
            has_earlier = self.state.exists() or self.aside.exists()
            consequence = "the state saved before is kept" if has_earlier else "no state was saved before"
            raise StorageError(
                f"the state of step {self.step} cannot be saved in {self.out} ({reason}); {consequence}: {RESUME_HINT}"
            ) from error
        self.saved_at = now

    def _judge(self, now: float) -> dict[str, Any]:
        """Returns the log row with held-out figures, and saves the weights if they are the best so far."""
        self.model.eval()
        self.signals.interruptible = self.accelerator.num_processes == 1
        if self.signals.name and self.signals.interruptible:
            raise _StopRequested
        figures = self.task.evaluate(self.accelerator.unwrap_model(self.model))
        self.signals.interruptible = False
        self.model.train()
        self.judged = self.step
        entry = self._record(figures, now)
        figure = figures.get("figure", -math.inf)
        if self.main and (figure > self.best or not figures):
            self.best = figure
            self.save(self.accelerator.unwrap_model(self.model), self.out / "best", entry)
        return entry

    # ---------------------------------------------------------------- the steps

    def _advance(self, batch: Any) -> None:
        """One step of the optimizer."""
        config, accelerator = self.config, self.accelerator
        scale = _rate(self.step, self._elapsed() if config.minutes else 0.0, config)
        for group, rate in zip(self.optimizer.param_groups, self.rates):
            group["lr"] = rate * scale
        with accelerator.autocast():
            loss = self.task.loss(self.model, batch, accelerator.device)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_([p for g in self.groups for p in g["params"]], config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(float(loss.detach()))
        self.step += 1
        self.bar.set_postfix_str(f"loss {self.losses[-1]:.4g}", refresh=False)
        self.bar.update()
        if self.step % memory.TRIM_STEPS == 0:
            memory.trim()

    def _train(self) -> dict[str, Any]:
        """Trains and returns the last log row.  Raises _StopRequested between two steps, or while figures are computed."""
        config = self.config
        # every process takes its own batches: the seed differs, so none repeats another's work
        source = batches(self.task, config.seed + 1009 * self.accelerator.process_index, self.position, config.workers)
        # a signal came before its figures
        if 0 < self.step < config.steps and self.step % config.evaluate_every == 0 and self.judged < self.step:
            self._judge(self._elapsed())
        while self.step < config.steps and not (config.minutes and self._elapsed() > 60 * config.minutes):
            self.position, batch = next(source)
            self._advance(batch)
            if self.step % config.evaluate_every == 0:
                self._judge(self._elapsed())
            elif self.step % 50 == 0:
                self._record(None, self._elapsed())
            now, signal_name = self._agreed()
            if signal_name:
                raise _StopRequested
            if now - self.saved_at >= 60 * config.save_minutes:
                self._store(now)
        return self._judge(self._elapsed())

    def to_the_end(self) -> dict[str, Any]:
        """Does what `fit` promises, with the folder locked."""
        self.model.train()
        with self.bar, self.signals:
            try:
                row = self._train()
            except _StopRequested:
                self._store(self._elapsed())
                raise CancelledError(
                    f"the training was stopped ({self.signals.name}) and saved at step {self.step} in {self.out}: "
                    "run the same command again to resume"
                ) from None
            finally:
                stop_trackers(self.accelerator)
            self._store(self._elapsed())
        if self.main:
            self.save(self.accelerator.unwrap_model(self.model), self.out / "last", row)
        self.accelerator.wait_for_everyone()
        return row
