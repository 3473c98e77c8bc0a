"""Shared by the benchmarks of speed: repeated timing of alternating calls, peak memory, and the figures as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

Call = Callable[[], Any]


def median_seconds(call: Call, repeats: int = 5) -> float:
    """The median of the repetitions, after one that is not counted."""
    return median(seconds_in_turn({"": call}, repeats)[""])


def seconds_in_turn(calls: Mapping[str, Call], repeats: int) -> dict[str, list[float]]:
    """The seconds of each call and repetition, after one round that is not counted.

    The calls take turns, so that what slows the machine slows all of them alike.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if number:
                times[name].append(time.perf_counter() - start)
    return times


def peak_mb(pid: int | str = "self", field: str = "VmHWM") -> float:
    """Peak resident memory of a process, or another field of its status in MB (Linux)."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


def show(figures: Any, out: Path | None = None) -> None:
    """Prints the figures; writes them to `out` as well."""
    text = json.dumps(figures, indent=1)
    print(text)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
