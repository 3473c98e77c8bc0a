"""Shared by the loaders of rows, as JSON lines or one JSON list: checked fields, and ids for rows without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.types import ReferenceQuestion


class Line:
    """One row; errors name its file and line."""

    def __init__(self, path: Path, number: int, row: Mapping[str, Any]) -> None:
        self.path, self.number, self.row = path, number, row

    def error(self, problem: str, field: str) -> FormatError:
        return FormatError(problem, file=self.path.name, line=self.number, field=field)

    def text(self, row: Mapping[str, Any], name: str, field: str, *, empty: bool = False) -> str:
        value = row.get(name)
        if not isinstance(value, str) or not (empty or value.strip()):
            shown = "nothing" if name not in row else "an empty text" if isinstance(value, str) else f"{value!r:.80}"
            raise self.error(f"expected text, found {shown}", field)
        return value

    def texts(self, value: Any, field: str, *, empty: bool = False) -> tuple[str, ...]:
        if not isinstance(value, list) or not (value or empty):
            raise self.error(f"expected a list of {'' if empty else 'at least one '}text, found {value!r:.80}", field)
        for i, item in enumerate(value):
            if not isinstance(item, str) or not item.strip():
                raise self.error(f"expected text, found {item!r:.80}", f"{field}[{i}]")
        return tuple(value)

    def aliases(self, value: Any, field: str) -> tuple[str, ...]:
        """The aliases of one answer.  Raises FormatError for duplicates."""
        found = self.texts(value, field)
        if len(set(found)) < len(found):
            twice = next(text for i, text in enumerate(found) if text in found[:i])
            raise self.error(f"the answer '{twice[:80]}' occurs twice in one list of aliases; keep one", field)
        return found

    def id(self, taken: Mapping[str, int]) -> str:
        """The row's id, or one made of the file's name and the line.  Raises FormatError for a duplicate."""
        if "id" not in self.row:
            stem = self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name
            name = f"{stem}-{self.number}"
            while name in taken:  # an earlier row may have this id
                name += "'"
            return name
        name = self.text(self.row, "id", "id")
        if name in taken:
            raise self.error(f"'{name[:80]}' is also the id of line {taken[name]}; ids must differ", "id")
        return name


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered objects of JSON lines or of a JSON list (its first one is 1).  Raises FormatError."""
    if not json_io.first_text(path).startswith("["):
        yield from json_io.read_lines(path)
        return
    for number, row in enumerate(json_io.read(path), 1):
        if not isinstance(row, dict):
            raise FormatError(f"expected an object, found {row!r:.60}", file=path.name, line=number)
        yield number, row


def load_lines(path: Path, question_of: Callable[[Line, str], ReferenceQuestion]) -> list[ReferenceQuestion]:
    """A question for each row, `question_of(row, id)`.  Raises FormatError with the line, also when there is none."""
    taken: dict[str, int] = {}
    found = []
    for number, row in rows_of(path):
        line = Line(path, number, row)
        name = line.id(taken)
        taken[name] = number
        found.append(question_of(line, name))
    if not found:
        raise FormatError("contains no question", file=path.name)
    return found
