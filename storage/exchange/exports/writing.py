"""Writing one format of an export: what a format is, and its rows into a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sqlalchemy.orm import Session

from core.errors import InputError
from storage.exchange.filters import Filters, Names

Rows = Callable[[Session, Filters, Names, Counter[str]], Iterator[str]]
Whole = Callable[[Session, Filters, Names, Counter[str], TextIO], None]
Folder = Callable[[Session, Filters, Names, Counter[str], Path], None]


@dataclass(frozen=True, slots=True)
class Format:
    """`rows` gives JSON texts, one a line, in a list if `as_list`; `whole` writes the file itself, `folder` a folder.  `counts`: named even when they are 0."""

    suffix: str
    counts: Sequence[str]
    rows: Rows | None = None
    whole: Whole | None = None
    as_list: bool = False
    folder: Folder | None = None


Formats = Mapping[str, Format]


def check_format(formats: Formats, name: str, filters: Filters) -> Format:
    """Raises InputError for an unknown format, and for filters that it does not know."""
    if name not in formats:
        raise InputError(f"unknown format '{name}'; use one of {', '.join(formats)}")
    if name == "jsonl" and not filters.empty:
        raise InputError("a jsonl export holds everything: leave the filters out, or use another format")
    return formats[name]


def write_rows(session: Session, format: Format, out: TextIO | Path, filters: Filters, names: Names) -> dict[str, int]:
    """Streams one format into a file or a folder; returns the counts.  An empty database gives a valid file without rows."""
    counts: Counter[str] = Counter(dict.fromkeys(format.counts, 0))
    if isinstance(out, Path):
        assert format.folder is not None
        format.folder(session, filters, names, counts, out)
        return dict(counts)
    if format.whole is not None:
        format.whole(session, filters, names, counts, out)
        return dict(counts)
    assert format.rows is not None
    out.write("[" if format.as_list else "")
    for number, row in enumerate(format.rows(session, filters, names, counts)):
        if format.as_list:
            out.write((",\n" if number else "\n") + row)
        else:
            out.write(row + "\n")
    out.write("\n]\n" if format.as_list else "")
    return dict(counts)
