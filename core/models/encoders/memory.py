"""Memory that was freed, given back to the system.

Texts are of a new length at every question and every training step, and what their tensors leave behind in glibc's heap is in pieces that the next
ones do not fit into: a training grew by 1 MB a step (measured over 1,000 steps of 4,096 tokens), a process that answers by MBs a question, though
neither held more than before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Iterator
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

EVERY = 25  # training steps between two trims; one takes milliseconds

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _malloc_trim() -> Any:
    """glibc's call, or None on other systems: their allocators look after themselves."""
    try:
        return ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return None


def trim() -> bool:
    """Gives free pages back.  False where the C library has no such call."""
    call = _malloc_trim()
    if call is not None:
        call(0)
    return call is not None


def trimmed(steps: Callable[P, Iterator[T]]) -> Callable[P, Generator[T, None, None]]:
    """A generator function after whose end, whichever it is, freed memory is given back."""

    @wraps(steps)
    def run(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        try:
            yield from steps(*args, **kwargs)
        finally:
            trim()

    return run
