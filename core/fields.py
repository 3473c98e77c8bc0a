"""Checked fields of a record in a question or prediction file."""

from __future__ import annotations

from typing import Any

from core.errors import FormatError


class FieldReader:
    """Reads the fields of one record.  Errors name the file, the line or the question, and the field."""

    def __init__(self, file: object, *, line: int | None = None, question: str = "", parent: str = "") -> None:
        """`parent`: the place of the record in the file, before the names of its fields."""
        self.file, self.line, self._question, self._parent = file, line, question, parent

    def error(self, problem: str, field: str) -> FormatError:
        about = f"question '{self._question[:80]}': " if self._question else ""
        return FormatError(about + problem, file=self.file, line=self.line, field=f"{self._parent}{field}"[:120] or None)

    def text(self, value: Any, field: str, *, empty: bool = False) -> str:
        if not isinstance(value, str) or not (empty or value.strip()):
            raise self.error(f"expected text, found {'nothing' if value is None else f'{value!r:.80}'}", field)
        return value

    def items(self, value: Any, field: str, kind: type = object, *, empty: bool = False) -> list[Any]:
        """A list of objects of one kind; without `empty`, at least one."""
        if not isinstance(value, list):
            raise self.error(f"expected a list, found {'nothing' if value is None else f'{value!r:.80}'}", field)
        if not (value or empty):
            raise self.error("the list is empty; it needs at least one item", field)
        if (wrong := next((i for i, item in enumerate(value) if not isinstance(item, kind)), None)) is not None:
            name = "object" if kind is dict else kind.__name__
            raise self.error(f"expected {name}, found {value[wrong]!r:.80}", f"{field}[{wrong}]")
        return value

    def texts(self, value: Any, field: str, *, empty: bool = False) -> tuple[str, ...]:
        return tuple(self.text(v, f"{field}[{i}]") for i, v in enumerate(self.items(value, field, empty=empty)))

    def aliases(self, value: Any, field: str) -> tuple[str, ...]:
        """The aliases of one answer; none may be there twice."""
        found = self.texts(value, field)
        if len(set(found)) < len(found):
            twice = next(text for i, text in enumerate(found) if text in found[:i])
            raise self.error(f"the answer '{twice[:80]}' occurs twice in one list of aliases; keep one", field)
        return found
