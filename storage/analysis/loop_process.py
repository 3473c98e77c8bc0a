"""Runs commands in processes of their own, with their output in a log, and reads their progress from the files that they write."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.errors import AmbiscopeError, StorageError
from core.settings import ROOT

POLL_SECONDS = 0.5
END_SECONDS = 60.0  # between asking a process to end and ending it: a training saves its state
_TAIL = 4000
# (arguments, environment, log file, watch): `watch` is called now and then and may raise to end the process
Runner = Callable[[list[str], Mapping[str, str], Path, Callable[[], None]], None]


def run_command(arguments: list[str], environment: Mapping[str, str], log: Path, watch: Callable[[], None]) -> None:
    """Runs one command from the repository's folder to its end; its output is appended to `log`.

    Raises AmbiscopeError with its last words where it fails, StorageError where the log cannot be written, and whatever `watch` raises,
    after the process was ended.
    """
    try:
        with log.open("ab") as file:
            start = file.tell()
            process = subprocess.Popen(arguments, cwd=ROOT, env=dict(environment), stdout=file, stderr=subprocess.STDOUT)
    except OSError as e:
        raise StorageError(f"{log}: cannot be written, or the command not started ({e.strerror or e})") from e
    try:
        while (code := process.poll()) is None:
            watch()
            time.sleep(POLL_SECONDS)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if code:
        command = " ".join(arguments[3:5])
        raise AmbiscopeError(f"{command} failed (exit {code}): {last_words(log, start)} (all of it: {log})")


def last_words(log: Path, start: int = 0) -> str:
    """The last error line of a log, else its last line.  `start`: the bytes of earlier commands in it."""
    try:
        with log.open("rb") as file:
            file.seek(max(start, log.stat().st_size - _TAIL))
            printed = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return "it said nothing"
    errors = [line for line in printed if line.startswith("error:")]
    return (errors or printed or ["it said nothing"])[-1][:500]


def last_row(path: Path) -> dict[str, Any]:
    """The last whole JSON line of a growing file; {} where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            complete_lines = file.read().rpartition(b"\n")[0]
        row = json.loads(complete_lines.rpartition(b"\n")[2])
    except (OSError, ValueError):
        return {}
    return row if isinstance(row, dict) else {}


def lines(path: Path) -> int:
    """Whole lines of a growing file."""
    try:
        with path.open("rb") as file:
            return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0
