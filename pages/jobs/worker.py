"""Work in a thread of its own that the script thread watches.  No Streamlit call is made in it."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod


class Worker(ABC):
    """Subclasses compute in `work` and publish what the page draws: `stage` says what is being done, `share` (0..1) how much of it is,
    None while nobody knows.  `error` is set before `done`.  Stopping is a request: `work` asks `stopping` where it can leave off."""

    title: str = ""  # for people; empty: the name under which it is kept
    stage: str = "starting"
    share: float | None = None

    def __init__(self, name: str) -> None:
        self.error: Exception | None = None
        self._stop, self._done = threading.Event(), threading.Event()
        self._begun, self._ended = time.monotonic(), None
        self._first: tuple[float, float] | None = None  # seconds and share when the share was first known
        self._thread = threading.Thread(target=self._run, daemon=True, name=name[:40])

    _ended: float | None

    def start(self) -> None:
        """Called last by a subclass's `__init__`: what `work` reads is there."""
        self._thread.start()

    @abstractmethod
    def work(self) -> None: ...

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

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at the speed so far; None while nothing can be said.  What an earlier run had done does not count."""
        share, now = self.share, self.seconds
        if self.done or share is None:
            return None
        since, from_ = self._first = self._first or (now, share)
        gained, took = share - from_, now - since
        return took * (1.0 - share) / gained if gained > 0 and took >= 1.0 else None
