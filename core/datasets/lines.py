"""Shared by the loaders of rows, as JSON lines or one JSON list: checked fields, and ids for rows that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.json_io import FieldReader
from core.types import ReferenceQuestion


class DataLine(FieldReader):
    """One row.  Errors name its file, and its line or, in a JSON list, its index."""

    def __init__(self, path: Path, number: int, row: Mapping[str, Any], *, is_list: bool = False) -> None:
        """`number`: the line, or the position in a list, counted from 1."""
        super().__init__(path.name, line=None if is_list else number, parent=f"[{number - 1}]." if is_list else "")
        self.path, self.number, self.row = path, number, row
        self.place = f"row [{number - 1}]" if is_list else f"line {number}"

    def with_row(self, row: Mapping[str, Any]) -> DataLine:
        """The same place with other fields."""
        return DataLine(self.path, self.number, row, is_list=self.line is None)

    def own_id(self, place_of: Mapping[str, str]) -> str:
        """The row's id, or one made from the file's name and the row's number.  Raises FormatError for a duplicate.

        `place_of`: the places of the earlier rows by their ids.
        """
        if "id" not in self.row:
            stem = self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name
            name = f"{stem}-{self.number}"
            while name in place_of:  # an earlier row may have this id
                name += "'"
            return name
        name = self.id(self.row["id"], "id")
        if name in place_of:
            raise self.error(f"'{name[:80]}' is also the id of {place_of[name]}; ids must differ", "id")
        return name


def _lines_of(path: Path) -> Iterator[DataLine]:
    """The objects of JSON lines or of a JSON list.  Raises FormatError."""
    if not json_io.first_text(path).startswith("["):
        for number, row in json_io.read_lines(path):
            yield DataLine(path, number, row)
        return
    for number, row in enumerate(json_io.read(path), 1):
        if not isinstance(row, dict):
            raise FormatError(f"expected an object, found {row!r:.60}", file=path.name, field=f"[{number - 1}]")
        yield DataLine(path, number, row, is_list=True)


def load_lines(path: Path, question_of: Callable[[DataLine, str], ReferenceQuestion]) -> list[ReferenceQuestion]:
    """One question for each row, made by `question_of(row, id)`.  Raises FormatError with the line or index, also if there is
    none."""
    place_of: dict[str, str] = {}
    questions = []
    for line in _lines_of(path):
        name = line.own_id(place_of)
        place_of[name] = line.place
        questions.append(question_of(line, name))
    if not questions:
        raise FormatError("contains no question", file=path.name)
    return questions
