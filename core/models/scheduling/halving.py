"""Calls for which the memory of a device is too small: fewer items at once, and what does not fit alone goes elsewhere.  Imports no model library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Halving:
    """Runs a call over items in parts that fit; a number that fitted is kept for later calls."""

    def __init__(
        self, is_full: Callable[[RuntimeError], bool], halved: Callable[[int, int], None], leave: Callable[[], None]
    ) -> None:
        """`is_full`: whether an error is the memory's and there is somewhere to go; `halved`: told how many were too many and how many are taken
        from then on; `leave`: called where one item does not fit, so that the next call runs elsewhere."""
        self._is_full, self._halved, self._leave = is_full, halved, leave
        self._most = 0  # items of one call; 0: no limit

    def run(self, call: Callable[[slice], T], count: int, most: int = 0) -> list[T]:
        """The results of `call` for items 0..count-1, in order, in parts of at most `most` (0: all), or fewer if memory is short."""
        out: list[T] = []
        start = 0
        while start < count:
            stop = min([count, *(start + n for n in (most, self._most) if n)])
            try:
                out.append(call(slice(start, stop)))
                start = stop
            except RuntimeError as error:
                if not self._is_full(error):
                    raise
                items = stop - start
                self._most = items // 2
                if items > 1:
                    self._halved(items, self._most)
                else:
                    self._leave()
        return out
