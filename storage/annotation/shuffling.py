"""What is shown in which order to whom: from a task's stored seed, so that a reload shows the same."""

from __future__ import annotations

import hashlib


def side_order(seed: int, sides: int) -> list[int]:
    """Which side (0 or 1) is shown as a, which as b.

    >>> sorted(side_order(7, 2))
    [0, 1]
    """
    return order(seed, "side", sides)


def order(seed: int, name: str, count: int) -> list[int]:
    """A permutation of 0..count-1 by digests, not by `random`, whose shuffle may differ between Python versions."""
    return sorted(range(count), key=lambda i: hashlib.sha256(f"{seed}\0{name}\0{i}".encode()).digest())
