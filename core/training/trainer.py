"""The training loop: resumable, logged, on CPU or CUDA, bf16 where it is faster, several GPUs through accelerate.

A run folder holds config.json, log.jsonl (losses and held-out figures), state/ (weights, optimizer, position) and best/ and last/ (weights only).
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from core.errors import InputError


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
    save_every: int = 250
    precision: str = "bf16"
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.steps < 1 or self.lr <= 0:
            raise InputError(f"steps {self.steps} must be at least 1 and lr {self.lr} positive")
        if self.precision not in ("bf16", "fp32"):
            raise InputError(f"precision is '{self.precision}'; use bf16 or fp32")


class Task(Protocol):
    """What is trained: batches that depend on (seed, position) only, a loss, and a held-out figure."""

    def batches(self, seed: int, start: int) -> Iterator[tuple[int, Any]]:
        """(position to resume from after this batch, batch), for ever."""
        ...

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor: ...

    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """Held-out figures; the one under "figure" decides which weights are the best (higher is better)."""
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


def fit(
    network: nn.Module,
    task: Task,
    config: TrainConfig,
    out: Path,
    save: Callable[[nn.Module, Path, dict[str, Any]], None],
    log: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Trains until `steps` or `minutes`; resumes a run folder whose config is the same.  Returns the last log row.

    Raises InputError when `out` holds a run of another config.
    """
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="bf16" if config.precision == "bf16" else "no", cpu=config.device == "cpu")
    out.mkdir(parents=True, exist_ok=True)
    written = json.dumps(asdict(config), indent=1)
    known = out / "config.json"
    state, aside = out / "state", out / "state-before"
    if known.exists() and known.read_text() != written and (state.exists() or aside.exists()):
        raise InputError(f"{out} holds a run with other settings; name another folder with --out or delete it")
    known.write_text(written)

    torch.manual_seed(config.seed)
    groups = parameter_groups(network, config)
    rates = [group["lr"] for group in groups]
    optimizer = torch.optim.AdamW(groups, weight_decay=config.weight_decay, foreach=True)
    step, position, elapsed_before, best = 0, 0, 0.0, -math.inf
    model, optimizer = accelerator.prepare(network, optimizer)
    if not state.exists() and aside.exists():  # a kill between the two renames of `store`
        aside.rename(state)
    if (state / "position.json").exists():
        accelerator.load_state(str(state))
        saved = json.loads((state / "position.json").read_text())
        step, position, elapsed_before, best = saved["step"], saved["position"], saved["elapsed"], saved["best"]
        log(f"resumed at step {step}")
    started = time.monotonic()
    # every process takes its own batches: the seed differs, so none repeats another's work
    source = task.batches(config.seed + 1009 * accelerator.process_index, position)
    log_file = out / "log.jsonl"
    row: dict[str, Any] = {}
    losses: list[float] = []

    def elapsed() -> float:
        return elapsed_before + time.monotonic() - started

    def record(figures: dict[str, float] | None) -> dict[str, Any]:
        mean = sum(losses) / len(losses) if losses else None
        entry = {"step": step, "minutes": round(elapsed() / 60, 2), "loss": mean, **(figures or {})}
        if accelerator.is_main_process:
            with log_file.open("a") as file:
                file.write(json.dumps(entry) + "\n")
            log(" ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()))
        losses.clear()
        return entry

    def store() -> None:
        if accelerator.is_main_process:
            # beside the old state, then in its place: a kill leaves one whole state
            fresh = out / "state-new"
            shutil.rmtree(fresh, ignore_errors=True)
            accelerator.save_state(str(fresh))
            (fresh / "position.json").write_text(
                json.dumps({"step": step, "position": position, "elapsed": elapsed(), "best": best})
            )
            shutil.rmtree(aside, ignore_errors=True)
            if state.exists():
                state.rename(aside)
            fresh.rename(state)
            shutil.rmtree(aside, ignore_errors=True)

    def judge() -> dict[str, Any]:
        nonlocal best
        model.eval()
        figures = task.evaluate(accelerator.unwrap_model(model))
        model.train()
        entry = record(figures)
        if accelerator.is_main_process and figures["figure"] > best:
            best = figures["figure"]
            save(accelerator.unwrap_model(model), out / "best", entry)
        return entry

    model.train()
    while step < config.steps and not (config.minutes and elapsed() > 60 * config.minutes):
        position, batch = next(source)
        scale = _rate(step, elapsed(), config)
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
        if step % config.evaluate_every == 0:
            row = judge()
        elif step % 50 == 0:
            row = record(None)
        if step % config.save_every == 0:
            store()
    row = judge()
    store()
    if accelerator.is_main_process:
        save(accelerator.unwrap_model(model), out / "last", row)
    return row
