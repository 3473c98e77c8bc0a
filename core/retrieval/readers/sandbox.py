"""Parses in a separate process with bounded memory and time (core/retrieval/parsing/worker.py), so that a malicious file can't
crash the app.

A process reads one document after another, until `close`; one that ended without a reply, or whose caller stopped reading, is not used again.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from core.settings import ROOT, child_environment

ARGV = [sys.executable, "-m", "core.retrieval.parsing.worker"]
# in the process itself: what answers a request of a reader there (worker.py)
here: Callable[[dict[str, Any]], Iterator[dict[str, Any]]] | None = None
_idle: list[subprocess.Popen[bytes]] = []
_lock = threading.Lock()


class StoppedError(Exception):
    """The process ended before its document did, by a limit on memory or time or by a parser's crash."""


def _start() -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(ARGV, cwd=ROOT, env=child_environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    for stream in (worker.stdin, worker.stdout):
        with suppress(OSError):
            if stream:
                stream.close()
    worker.wait()


@atexit.register
def close() -> None:
    """Ends the idle processes."""
    while _idle:
        _end(_idle.pop())


def parsed(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All but the last of the messages that answer a request (see worker.py).  Raises StoppedError."""
    if here:
        yield from here(request)
        return
    with _lock:
        worker = _idle.pop() if _idle else _start()
    if worker.poll() is not None:
        worker = _start()
    assert worker.stdin is not None
    assert worker.stdout is not None
    finished = False
    try:
        with suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(request).encode() + b"\n")
            worker.stdin.flush()
        for raw in worker.stdout:
            message: dict[str, Any] = json.loads(raw) if raw.endswith(b"\n") else {}
            if "done" in message:
                finished = True
                with _lock:
                    _idle.append(worker)
                return
            if message:
                yield message
        raise StoppedError
    finally:
        if not finished:
            _end(worker)  # a caller may stop reading at any time
