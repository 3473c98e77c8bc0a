"""Parsing in a process of its own with bounded memory and time (core/retrieval/parsing/worker.py), so that a malicious file cannot crash the app.

A process reads one document after another; one that ended without a reply, or whose caller stopped reading, is not used again.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
ARGV = [sys.executable, "-m", "core.retrieval.parsing.worker"]
_idle: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


class StoppedError(Exception):
    """The process ended before its document did: by a limit on memory or time, or by a crash of a parser."""


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(ARGV, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for stream in (worker.stdin, worker.stdout):
        with suppress(OSError):
            if stream:
                stream.close()
    worker.wait()


def _taken() -> tuple[subprocess.Popen[bytes], bool]:
    """A process, and whether it was used before."""
    while True:
        with _lock:
            worker = _idle.pop() if _idle else None
        if worker is None:
            return _start(), False
        if worker.poll() is None:
            return worker, True
        _end(worker)


@atexit.register
def close() -> None:
    """Ends the idle processes."""
    while _idle:
        _end(_idle.pop())


def parsed(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages that answer a request (worker.py says which) but the last.  Raises StoppedError."""
    line = json.dumps(request).encode() + b"\n"
    for _ in range(2):  # an idle process may end by itself at this moment
        worker, used = _taken()
        assert worker.stdin is not None
        assert worker.stdout is not None
        message: dict[str, Any] | None = None
        finished = False
        try:
            with suppress(BrokenPipeError):
                worker.stdin.write(line)
                worker.stdin.flush()
            for raw in worker.stdout:
                if not raw.endswith(b"\n"):
                    break
                before, message = message, json.loads(raw)
                if message is not None and "done" in message:
                    finished = True
                    with _lock:
                        _idle.append(worker)
                    if before is not None:  # the last one, after which the caller may stop: the process goes on
                        yield before
                    return
                if before is not None:
                    yield before
            if message is not None:
                yield message
        finally:
            if not finished:
                _end(worker)  # a caller may stop reading at any time
        if not used or message is not None:
            break
    raise StoppedError
