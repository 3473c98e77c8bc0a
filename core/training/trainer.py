"""The training loop: resumable, logged, on CPU or CUDA, in bf16 autocast where the device multiplies it natively, several GPUs through accelerate.

A run folder holds config.json (settings and what identifies the run's inputs), log.jsonl (losses and held-out figures), state/ (weights, optimizer,
position) and best/ and last/ (weights only).  The state is saved by the clock, at the end, and at a signal; one run at a time holds the folder.
"""

from __future__ import annotations

import json
import math
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from core import disk
from core.errors import CancelledError, CheckpointError, InputError, StorageError
from core.models.encoders import memory
from core.models.encoders.precision import native_bf16
from core.models.encoders.pretrained import reason

PRECISIONS = ("auto", "bf16", "fp32")
GO_ON = "make room and start again to go on"


@dataclass(frozen=True)
class TrainConfig:
    """`minutes` ends a run by the clock (0: no limit); the learning rate decays linearly over whichever of both ends first."""

    steps: int = 10_000
    minutes: float = 0.0
    lr: float = 5e-5
    head_lr: float = 2e-4
    warmup: int = 100
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    evaluate_every: int = 500
    precision: str = "auto"  # bf16 where it is native, else fp32
    device: str = "auto"
    save_minutes: float = 5.0  # between two saves of the state; 0: after each step

    def __post_init__(self) -> None:
        for name in ("steps", "evaluate_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("lr", "head_lr"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.minutes < math.inf:
            raise InputError(f"minutes is {self.minutes}; it must be 0 (no limit) or more")
        if not 0 <= self.save_minutes < math.inf:
            raise InputError(f"save_minutes is {self.save_minutes}; it must be 0 (after each step) or more")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision is '{self.precision}'; use {', '.join(PRECISIONS)}")


class Task(Protocol):
    """What is trained: batches that depend on (seed, position) only, a loss, and a held-out figure."""

    def batches(self, seed: int, start: int) -> Iterator[tuple[int, Any]]:
        """(position to resume from after this batch, batch), for ever."""
        ...

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor: ...

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Held-out figures; the one under "figure" decides which weights are the best (higher is better).  {} when nothing is held out."""
        ...


def parameter_groups(network: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """Embeddings are frozen: the checkpoint need not repeat them, and 22M parameters become 11M.  New weights learn faster."""
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


def _claim(out: Path, settings: dict[str, Any]) -> None:
    """Writes config.json.  Raises InputError when the folder holds the state of a run with other settings."""
    known = out / "config.json"
    if known.exists() and any((out / name).exists() for name in ("state", "state-before")):
        try:
            earlier = dict(json.loads(known.read_text()))
        except (ValueError, TypeError):
            earlier = {}
        # as they read back from JSON
        ours = {**(now := json.loads(json.dumps(settings))), **now.get("identity", {})}
        theirs = {**earlier, **earlier.get("identity", {})}
        # how often the state is saved changes nothing of what is learnt
        other = sorted(n for n in {*ours, *theirs} - {"identity", "save_minutes", "save_every"} if ours.get(n) != theirs.get(n))
        if other or "identity" not in earlier:
            names = ", ".join(other) or "identity"
            raise InputError(f"{out} holds a run with other settings ({names}); name another folder with --out or delete it")
    disk.write_json(known, settings, GO_ON)


def _cut(log_file: Path, step: int) -> None:
    """Leaves the rows up to the saved step: what a kill threw away is logged again when it is trained again."""
    if not log_file.exists():
        return
    kept = []
    for line in log_file.read_text().splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except (ValueError, KeyError, TypeError):  # a row cut by the kill
            continue
    disk.write_text(log_file, "".join(kept), GO_ON)


def _load(accelerator: Any, state: Path) -> dict[str, Any]:
    """position.json of a saved state, whose weights, optimizer and random numbers are loaded.  Raises CheckpointError."""
    try:
        saved = json.loads((state / "position.json").read_text())
        accelerator.load_state(str(state))
        own = {"position": int(saved["positions"][accelerator.process_index])}
        own["judged"] = int(saved.get("judged", saved["step"]))
        return {**own, **{name: saved[name] for name in ("step", "elapsed", "best", "losses")}}
    except (
        OSError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        EOFError,
        pickle.UnpicklingError,
        SafetensorError,
    ) as error:
        raise CheckpointError(
            f"{state} is damaged or of another network ({reason(error)}); delete it to train anew, or name another folder with --out"
        ) from None


def _bf16(config: TrainConfig) -> bool:
    if config.precision != "auto":
        return config.precision == "bf16"
    on_gpu = config.device != "cpu" and torch.cuda.is_available()
    return native_bf16(torch.device("cuda" if on_gpu else "cpu"))


class _Asked(Exception):
    """Somebody asked the run to end."""


class _Signals:
    """Hears SIGTERM and SIGINT while it is entered: the first one asks, a second one does what it always did.

    Python hears signals in the main thread alone; elsewhere nothing changes.  `interruptible` is True while nothing is changed that is saved:
    then the first signal raises _Asked at once.
    """

    def __init__(self) -> None:
        self.name, self.interruptible = "", False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._heard) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def _heard(self, number: int, _frame: object) -> None:
        self.name = signal.Signals(number).name
        self.__exit__()
        if self.interruptible:
            raise _Asked


def fit(
    network: nn.Module,
    task: Task,
    config: TrainConfig,
    out: Path,
    save: Callable[[nn.Module, Path, dict[str, Any]], None],
    log: Callable[[str], None] = print,
    identity: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Trains until `steps` or `minutes`; resumes a run folder whose config and identity are the same, and says at which step.  Returns the last
    log row.  At SIGTERM or SIGINT the step is finished, the state saved, and CancelledError raised.

    `identity`: what else makes this run this run, as JSON values: arguments and digests of input files.  Where nothing is held out, the
    best weights are the last ones.  Raises InputError when `out` holds a run of another config or identity, ConflictError while another run
    writes there, CheckpointError when its state cannot be loaded, StorageError when the disk refuses: the state saved last is then whole.
    """
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs

    accelerator = Accelerator(
        mixed_precision="bf16" if _bf16(config) else "no",
        cpu=config.device == "cpu",
        # a batch without a prompt, or of [EOI] only, leaves some weights without a gradient
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    with disk.claimed(out, "a training") if accelerator.is_main_process else nullcontext():
        return _fit(accelerator, network, task, config, out, save, log, identity)


def _fit(
    accelerator: Any,
    network: nn.Module,
    task: Task,
    config: TrainConfig,
    out: Path,
    save: Callable[[nn.Module, Path, dict[str, Any]], None],
    log: Callable[[str], None],
    identity: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """`fit`, with the folder held."""
    from accelerate.utils import broadcast_object_list, gather_object
    from tqdm import tqdm

    main = accelerator.is_main_process
    state, aside, log_file = out / "state", out / "state-before", out / "log.jsonl"
    if main:
        _claim(out, {**asdict(config), "processes": accelerator.num_processes, "identity": dict(identity or {})})
        if not state.exists() and aside.exists():  # a kill between the two renames of `store`
            aside.rename(state)
    accelerator.wait_for_everyone()

    torch.manual_seed(config.seed)
    groups = parameter_groups(network, config)
    rates = [group["lr"] for group in groups]
    optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay, foreach=True)
    step, position, elapsed_before, best, judged = 0, 0, 0.0, -math.inf, 0
    losses: list[float] = []
    model, optimizer = accelerator.prepare(network, optimizer)
    if state.exists():
        saved = _load(accelerator, state)
        step, position, elapsed_before, best = saved["step"], saved["position"], saved["elapsed"], saved["best"]
        losses, judged = saved["losses"], saved["judged"]
    bar = tqdm(total=config.steps, initial=step, unit="step", file=sys.stderr, disable=not (main and sys.stderr.isatty()))
    if main:
        if step:
            log(f"resumed at step {step} of {config.steps}, after {elapsed_before / 60:.1f} minutes of training")
        elif log_file.exists():
            log(f"{out}: an earlier run ended before its state was saved; begins anew")
        _cut(log_file, step)
    started, saved_at, signals = monotonic(), elapsed_before, _Signals()
    # every process takes its own batches: the seed differs, so none repeats another's work
    source = task.batches(config.seed + 1009 * accelerator.process_index, position)

    def agreed() -> tuple[float, str]:
        """Seconds of the whole run on the main process's clock, and the signal that it heard: all processes must agree on rates and on the end."""
        seconds, heard = broadcast_object_list([elapsed_before + monotonic() - started, signals.name])
        return float(seconds), str(heard)

    def elapsed() -> float:
        return agreed()[0]

    def record(figures: dict[str, float] | None, now: float) -> dict[str, Any]:
        mean = sum(losses) / len(losses) if losses else None
        entry = {"step": step, "minutes": round(now / 60, 2), "loss": mean, **(figures or {})}
        if main:
            disk.append_line(log_file, json.dumps(entry) + "\n", GO_ON)
            bar.clear()
            log(" ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()))
            bar.refresh()
        losses.clear()
        return entry

    def store(now: float) -> None:
        # beside the old state, then in its place: a kill leaves one whole state
        nonlocal saved_at
        fresh = out / "state-new"
        if main:
            shutil.rmtree(fresh, ignore_errors=True)
        accelerator.wait_for_everyone()
        where: dict[str, Any] = {"step": step, "elapsed": now, "best": best, "losses": losses, "judged": judged}
        where["positions"] = gather_object([position])
        try:
            accelerator.save_state(str(fresh))  # each process its random numbers, the main one everything else
            accelerator.wait_for_everyone()
            if main:
                disk.write_text(fresh / "position.json", json.dumps(where), GO_ON)  # the best figure may be -inf
                shutil.rmtree(aside, ignore_errors=True)
                if state.exists():
                    state.rename(aside)
                fresh.rename(state)
                shutil.rmtree(aside, ignore_errors=True)
        except (
            OSError,
            RuntimeError,
            SafetensorError,
            StorageError,
        ) as error:  # torch and safetensors have their own words for a full disk
            reason = disk.why(error, out)
            shutil.rmtree(fresh, ignore_errors=True)
            kept = "the state saved before is kept" if state.exists() or aside.exists() else "no state was saved before"
            raise StorageError(f"the state of step {step} cannot be saved in {out} ({reason}); {kept}: {GO_ON}") from error
        saved_at = now

    def judge(now: float) -> dict[str, Any]:
        nonlocal best, judged
        model.eval()
        signals.interruptible = accelerator.num_processes == 1
        if signals.name and signals.interruptible:
            raise _Asked
        figures = task.evaluate(accelerator.unwrap_model(model))
        signals.interruptible = False
        model.train()
        judged = step
        entry = record(figures, now)
        figure = figures.get("figure", -math.inf)
        if main and (figure > best or not figures):
            best = figure
            save(accelerator.unwrap_model(model), out / "best", entry)
        return entry

    def train() -> dict[str, Any]:
        """Returns the last log row.  Raises _Asked between two steps, or while figures are computed."""
        nonlocal step, position
        if 0 < step < config.steps and step % config.evaluate_every == 0 and judged < step:  # a signal came before its figures
            judge(elapsed())
        while step < config.steps and not (config.minutes and elapsed() > 60 * config.minutes):
            position, batch = next(source)
            scale = _rate(step, elapsed() if config.minutes else 0.0, config)
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * scale
            with accelerator.autocast():
                loss = task.loss(model, batch, accelerator.device)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_([p for g in groups for p in g["params"]], config.clip)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
            step += 1
            bar.set_postfix_str(f"loss {losses[-1]:.4g}", refresh=False)
            bar.update()
            if step % memory.EVERY == 0:
                memory.trim()
            if step % config.evaluate_every == 0:
                judge(elapsed())
            elif step % 50 == 0:
                record(None, elapsed())
            now, heard = agreed()
            if heard:
                raise _Asked
            if now - saved_at >= 60 * config.save_minutes:
                store(now)
        return judge(elapsed())

    model.train()
    with bar, signals:
        try:
            row = train()
        except _Asked:
            store(elapsed())
            raise CancelledError(
                f"the training was stopped ({signals.name}) and saved at step {step} in {out}: run the same command again to go on"
            ) from None
        store(elapsed())
    if main:
        save(accelerator.unwrap_model(model), out / "last", row)
    accelerator.wait_for_everyone()
    return row
