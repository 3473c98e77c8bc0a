"""Work on many items goes in portions, so that no save of an annotator waits for seconds: how large they are, and the rest between."""

from __future__ import annotations

import time

AT_ONCE = 200  # items of a first portion
LEAST, MOST = 50, 1000
AIM_SECONDS = 0.05  # that a portion holds the lock
REST_SECONDS = 0.25  # at most, between two portions


class Pace:
    """How many items the next portion has, and the rest before it: as long as the portion took, so that half of the time is the others'."""

    def __init__(self) -> None:
        self.size = AT_ONCE

    def rest(self, seconds: float) -> None:
        self.size = max(LEAST, min(MOST, int(self.size * min(2.0, AIM_SECONDS / max(seconds, 1e-4)))))
        time.sleep(min(seconds, REST_SECONDS))
