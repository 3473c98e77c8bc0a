"""What the commands of this folder share: repeated timing of one call, and the figures as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def seconds(call: Callable[[], Any], repeats: int = 5) -> list[float]:
    """The seconds of each repetition; one that is not counted goes before."""
    call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def show(found: Any, out: Path | None) -> None:
    """Prints the figures; writes them to `out` as well."""
    text = json.dumps(found, indent=1)
    print(text)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
