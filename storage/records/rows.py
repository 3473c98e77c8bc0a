"""Records out of the rows of a table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

_R = TypeVar("_R")


def record(kind: type[_R], row: object, **given: Any) -> _R:
    """A `kind` (a dataclass) with the columns of the row that have its fields' names; `given` are the fields that differ."""
    return kind(**given, **{field.name: getattr(row, field.name) for field in fields(kind) if field.name not in given})  # type: ignore[arg-type]
