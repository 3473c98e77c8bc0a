"""Files of JSON lines, votes, what stands beside a database, and calls at the same instant: for the tests of the store."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from storage.exchange.consensus import Vote
from storage.exchange.filters import Filters
from storage.store import Store

T = TypeVar("T")


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def put_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def exported(store: Store, format: Any, path: Path, **filters: Any) -> list[dict[str, Any]]:
    """The rows of an export."""
    store.exports.export(format, path, filters=Filters(**filters))
    if format == "csv":
        return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    return read_lines(path) if format in ("training", "preferences") else json.loads(path.read_text(encoding="utf-8"))


def vote(annotator: str, answer: str, label: str = "correct", clarified: str = "", minutes: int = 0, **more: Any) -> Vote:
    """A judgment so many minutes after nine."""
    nine = datetime(2026, 1, 1, 9, tzinfo=UTC)
    return Vote(annotator, answer, clarified, label, nine + timedelta(minutes=minutes), **more)


def digest(path: Path) -> dict[str, str]:
    """A digest of every file beside the database, so that nothing is written unnoticed."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(path.parent.iterdir()) if p.is_file()}


def at_once(act: Callable[[T], object], values: Sequence[T]) -> None:
    """Acts on each value in a thread of its own; raises what one of them raises."""
    with ThreadPoolExecutor(len(values)) as pool:
        list(pool.map(act, values))
