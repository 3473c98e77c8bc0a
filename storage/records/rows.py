"""Makes records from rows: each field is filled from the column of its name, so that a new column needs no line here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def record_of(kind: type[T], row: Any, **overrides: Any) -> T:
    """A record of a dataclass.  `overrides`: the fields that the row lacks, or has under another name or in another form."""
    names = (f.name for f in fields(kind) if f.name not in overrides)  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **overrides)
