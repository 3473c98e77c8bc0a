"""Writing one format of an export: the record of a format, and its rows into a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy.orm import Session

from storage.exchange.filters import Filters, Names

Rows = Callable[[Session, Filters, Names, Counter[str]], Iterator[str]]
Write = Callable[[Session, Filters, Names, Counter[str], Any], None]


@dataclass(frozen=True, slots=True)
class Format:
    """`write` streams into a text file or, where `is_folder`, makes the files of a folder.  `counts`: named even when they are 0."""

    suffix: str
    counts: Sequence[str]
    write: Write
    is_folder: bool = False


def json_lines(rows: Rows) -> Write:
    """`rows` are JSON texts, one a line."""

    def write(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
        out.writelines(row + "\n" for row in rows(session, filters, names, counts))

    return write


def json_list(rows: Rows) -> Write:
    """The same as one JSON list."""

    def write(session: Session, filters: Filters, names: Names, counts: Counter[str], out: TextIO) -> None:
        out.write("[")
        for number, row in enumerate(rows(session, filters, names, counts)):
            out.write((",\n" if number else "\n") + row)
        out.write("\n]\n")

    return write


def write_rows(session: Session, format: Format, out: TextIO | Path, filters: Filters, names: Names) -> dict[str, int]:
    """Streams one format into a file or a folder; returns the counts.  An empty database gives a valid file without rows."""
    counts: Counter[str] = Counter(dict.fromkeys(format.counts, 0))
    format.write(session, filters, names, counts, out)
    return dict(counts)
