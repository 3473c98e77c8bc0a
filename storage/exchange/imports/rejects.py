"""Collects the wrong rows of a file before it is refused."""

from __future__ import annotations

from storage.records.results import MAX_REASONS, RejectedRowsError


class Rejects:
    """The refused rows of a file, with the reasons for the first MAX_REASONS."""

    def __init__(self, file: object, unit: str = "line", *, is_list: bool = False) -> None:
        """`unit`: as in RejectedRowsError; `is_list`: the rows are those of a JSON list, and are named by their index too."""
        self.file, self.unit, self.is_list, self.total = file, unit, is_list, 0
        self.rows: list[tuple[int, str]] = []

    def add(self, line: int, reason: str, index: int = 0) -> None:
        self.total += 1
        if self.is_list and f"[{index}]" not in reason:
            reason = f"row [{index}]: {reason}"
        if self.total <= MAX_REASONS:
            self.rows.append((line, " ".join(reason.split())[:300]))

    def settle(self) -> None:
        """Raises RejectedRowsError if a row was refused."""
        if self.total:
            raise RejectedRowsError(self.file, tuple(self.rows), self.total, self.unit)
