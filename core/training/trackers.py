"""Sends the losses and figures of a training to TensorBoard, trackio or Weights & Biases as well, through accelerate.

Nothing of them is imported unless it is asked for.  They get the numbers of the log and of the configuration, no text of any question.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError

TRACKERS = ("tensorboard", "trackio", "wandb")  # names for accelerate's log_with, and of their packages
PROJECT = "ambiscope"


def check_tracker(name: str) -> None:
    """Raises InputError for an unknown name, and where its package is not installed."""
    if name and name not in TRACKERS:
        raise InputError(f"losses cannot be sent to '{name}'; use one of {', '.join(TRACKERS)}")
    if name and importlib.util.find_spec(name) is None:
        raise InputError(f"--log-with {name} needs a package that is not installed: pip install {name}")


def start_tracker(accelerator: Any, name: str, out: Path, config: Mapping[str, Any], step: int) -> None:
    """`out`: the run's folder, whose name is the run's.  `step`: the last step of the state that the run resumes from.
    TensorBoard hides later steps that were logged before."""
    plain = {key: value for key, value in config.items() if isinstance(value, int | float | str | bool)}
    begin: dict[str, dict[str, Any]] = {
        "tensorboard": {"purge_step": step + 1},
        "trackio": {"name": out.name},
        "wandb": {"name": out.name, "dir": str(out)},
    }
    accelerator.init_trackers(PROJECT, config=plain, init_kwargs={name: begin[name]})


def stop_trackers(accelerator: Any) -> None:
    """Writes everything that is still queued.  It doesn't call `end_training`, which would also end the group of processes,
    because a co-training has more runs."""
    for tracker in accelerator.trackers:
        if accelerator.is_main_process or not tracker.main_process_only:
            tracker.finish()
