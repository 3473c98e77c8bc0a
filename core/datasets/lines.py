"""Shared by the loaders of rows, as JSON lines or one JSON list: checked fields, and ids for rows without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.json_io import FieldReader
from core.types import ReferenceQuestion


class Line(FieldReader):
    """One row; errors name its file and line."""

    def __init__(self, path: Path, number: int, row: Mapping[str, Any]) -> None:
        super().__init__(path.name, line=number)
        self.path, self.number, self.row = path, number, row

    def id(self, line_of: Mapping[str, int]) -> str:
        """The row's id, or one made of the file's name and the line.  Raises FormatError for a duplicate."""
        if "id" not in self.row:
            stem = self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name
            name = f"{stem}-{self.number}"
            while name in line_of:  # an earlier row may have this id
                name += "'"
            return name
        name = self.text(self.row["id"], "id")
        if name in line_of:
            raise self.error(f"'{name[:80]}' is also the id of line {line_of[name]}; ids must differ", "id")
        return name


def _rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
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
    line_of: dict[str, int] = {}
    questions = []
    for number, row in _rows_of(path):
        line = Line(path, number, row)
        name = line.id(line_of)
        line_of[name] = number
        questions.append(question_of(line, name))
    if not questions:
        raise FormatError("contains no question", file=path.name)
    return questions
