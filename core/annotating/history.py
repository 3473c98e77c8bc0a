"""Undo for a form that is one immutable value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
MAX_STEPS = 200


@dataclass
class History(Generic[T]):
    """The current value and the earlier ones, oldest first. Consecutive changes of one field (`field` not empty) are one
    step."""

    now: T
    before: list[T] = field(default_factory=list)
    _last: str = ""

    def change(self, value: T, field: str = "") -> bool:
        """Records a value; True if it differs.  Keeps the last 200."""
        if value == self.now:
            return False
        if not (field and field == self._last and self.before):
            self.before = [*self.before[-MAX_STEPS + 1 :], self.now]
        self.now, self._last = value, field
        return True

    def undo(self) -> bool:
        """False if there is nothing to undo."""
        if not self.before:
            return False
        self.now, self._last = self.before.pop(), ""
        return True
