"""Shared by plans of many trainings: the child process of one, its amount of computing, and its hours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from core.settings import ROOT, child_environment

BATCH_TOKENS = 4096  # of a training step, as `core train` has it
PARAMETERS = {
    "minilm": 11_000_000,
    "mpnet": 85_000_000,
    "smollm2": 106_000_000,
    "t5-base": 220_000_000,
}  # that take part in every token
# measured: an H200 did 14 with the small encoder and 49 with MPNet
RATES = {"cuda": 20e12, "cpu": 50e9}  # operations a second
DEVICES = {"cuda": "one data-centre GPU at 20 TFLOP/s", "cpu": "one CPU core at 50 GFLOP/s"}


def operations(steps: int, parameters: int = PARAMETERS["minilm"], tokens: int = BATCH_TOKENS) -> float:
    """The operations of a training, forward and backward (Kaplan et al. 2020, section 2.1)."""
    return 6.0 * parameters * tokens * steps


def computing(amount: float) -> str:
    """A number of operations as text: `2 PFLOP: about 0.111 hours on one data-centre GPU ...`."""
    hours = " or ".join(f"{amount / rate / 3600:.3g} hours on {DEVICES[device]}" for device, rate in RATES.items())
    return f"{amount / 1e15:.3g} PFLOP: about {hours}"


def run(words: Sequence[str], device: str, log: Path | None = None, **settings: str) -> None:
    """`python -m core WORDS` with some settings changed; its output goes to the end of `log`, or nowhere.

    Raises CalledProcessError.
    """
    environment = child_environment(device=device, **settings)
    command = [sys.executable, "-m", "core", *words]
    if log is None:
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        return
    with log.open("a", encoding="utf-8") as output:
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
