"""Checks of everything that enters the database or an import.

NUL is stored by SQLite but cuts SQL's `length()` short, and PostgreSQL refuses it; lone surrogates cannot be stored at all.  Here they are
refused, so that everything stored can be exported and imported again.  Files are read by core.json_io.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, get_args

from core.errors import InputError
from core.json_io import MAX_DEPTH
from core.text import stored_name, text_problem

PAGE_ROWS = 500  # rows a list returns at most
MAX_QUESTION_CHARS = 20_000  # a bound of the database; what people may ask is bounded by core.settings
MAX_ID_CHARS = 400

MAX_NAME_CHARS = 200
MAX_NOTE_CHARS = 20_000

_INT64 = 2**63


def check_text(value: str, name: str, *, limit: int, empty: bool = True, line: bool = False) -> str:
    """Returns the value.

    Raises InputError naming `name` for NUL, lone surrogates, more than `limit` characters, or a blank; with `line` (a name, a label), for any
    control character.
    """
    problem = text_problem(value, line=line)
    if problem is None and len(value) > limit:
        problem = f"it has {len(value)} characters; at most {limit} are allowed"
    if problem is None and not empty and not value.strip():
        problem = "it is empty"
    if problem:
        raise InputError(f"{name} cannot be stored: {problem}")
    return value


def check_choice(value: object, kind: Any, name: str) -> None:
    """Raises InputError unless `value` is one of a Literal's."""
    if value not in get_args(kind):
        raise InputError(f"{name} is {value!r}; use one of {', '.join(get_args(kind))}")


def plain_problem(value: Any) -> str | None:
    """The reason why a value isn't plain, storable JSON, with the path to the first wrong part; or None.  Never recurses."""
    stack: list[tuple[Any, str, int]] = [(value, "", 0)]
    while stack:
        item, path, depth = stack.pop()
        if depth > MAX_DEPTH:
            return f"{path[:80]}: nested deeper than {MAX_DEPTH}"
        problem: str | None = None
        if isinstance(item, str):
            problem = text_problem(item)
        elif isinstance(item, dict):
            for key, part in item.items():
                if not isinstance(key, str):
                    problem = f"key {key!r} is not text"
                    break
                if bad := text_problem(key):
                    problem = f"key: {bad}"
                    break
                stack.append((part, f"{path}.{key}" if path else key, depth + 1))
        elif isinstance(item, list):
            stack.extend((part, f"{path}[{i}]", depth + 1) for i, part in enumerate(item))
        elif isinstance(item, float):
            problem = None if math.isfinite(item) else f"{item} is not a finite number"
        elif isinstance(item, int) and not isinstance(item, bool):
            problem = None if -_INT64 <= item < _INT64 else "the number needs more than 64 bits"
        elif item is not None and not isinstance(item, bool):
            problem = f"a value of type {type(item).__name__} is not JSON"
        if problem:
            return f"{path}: {problem}" if path else problem
    return None


def storable(rows: Iterator[tuple[int, Any, str | None]]) -> Iterator[tuple[int, Any, str | None]]:
    """Rows of core.json_io; the problem of a row that cannot be stored says why."""
    for line, value, problem in rows:
        yield line, value, problem or plain_problem(value)


def check_annotator(name: str) -> str:
    """The name in its stored form (`core.text.stored_name`).  Raises InputError for a blank or unprintable one."""
    annotator = stored_name(check_text(name, "the annotator's name", limit=MAX_NAME_CHARS))
    check_text(annotator, "the annotator's name", limit=MAX_NAME_CHARS, empty=False)
    if not annotator.isprintable() or name != name.strip():
        raise InputError(f"the annotator's name {name!r} has control characters, or blanks at its ends: remove them")
    return annotator


def check_page(limit: int, offset: int) -> None:
    """Raises InputError unless 1 <= limit <= PAGE and offset >= 0."""
    if not 1 <= limit <= PAGE_ROWS or offset < 0:
        raise InputError(f"limit {limit}, offset {offset}: a page has 1 to {PAGE_ROWS} rows and starts at 0 or later")


def check_key(key: str | None) -> None:
    if key is not None:
        check_text(key, "the key", limit=MAX_ID_CHARS, empty=False)
