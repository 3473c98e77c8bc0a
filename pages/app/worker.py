"""Work in a thread of its own that the script thread watches.  No Streamlit call is made in it."""

from __future__ import annotations

import threading
import time


class Worker:
    """Subclasses compute in `work` and publish what the page draws.  `error` is set before `done`.  Stopping is a request:
    `work` asks `stopping` where it can leave off."""

    def __init__(self, name: str) -> None:
        self.error: Exception | None = None
        self._stop, self._done = threading.Event(), threading.Event()
        self._begun, self._ended = time.monotonic(), None
        self._thread = threading.Thread(target=self._run, daemon=True, name=name[:40])

    _ended: float | None

    def start(self) -> None:
        """Called last by a subclass's `__init__`: what `work` reads is there."""
        self._thread.start()

    def work(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self.error = error
        finally:
            self._ended = time.monotonic()
            self._done.set()

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """True when the work has ended."""
        return self._done.wait(seconds)

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def seconds(self) -> float:
        return (self._ended or time.monotonic()) - self._begun
