"""JSON without its traps: NaN, equal keys of which the last wins, lone surrogates, and errors that do not say where."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import FormatError, InputError

_BOM = "\ufeff"


class _Trap(ValueError):
    """What `json` would let by."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Trap(f"the key '{key[:80]}' occurs twice in one object; keep one")
        found[key] = value
    return found


def _constant(name: str) -> Any:
    raise _Trap(f"{name} is not JSON; write a number or null")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Trap(f"the number {text[:40]} is too large")
    return value


def parse(text: str, *, file: object = None, line: int | None = None) -> Any:
    """The value of one JSON text.  Raises FormatError with the line.

    >>> parse('{"a": [1]}')
    {'a': [1]}
    """
    try:
        value = json.loads(text.removeprefix(_BOM), object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
    except json.JSONDecodeError as e:
        where = e.lineno if line is None else line
        raise FormatError(f"not JSON ({e.msg} at column {e.colno}); mend the file", file=file, line=where) from None
    except RecursionError:
        raise FormatError("nested too deeply; no documented layout is", file=file, line=line) from None
    except ValueError as e:  # ours, and integers of thousands of digits
        raise FormatError(str(e), file=file, line=line) from None
    # A \ud800 escape is JSON but no text: it cannot be printed or stored.
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise FormatError("holds a lone surrogate (half of a character)", file=file, line=line) from None
    return value


def _opened(path: Path) -> Iterator[bytes]:
    """Lines of a plain or gzipped file.  Raises InputError where it cannot be read, FormatError where gzip is damaged."""
    try:
        with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb") as stream:
            yield from stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise FormatError(f"the gzip file is damaged or truncated ({e}); copy it again", file=path.name) from e
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror or e}); give the path of an existing file") from e


def _text(raw: bytes, path: Path, line: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as e:
        raise FormatError(
            f"not UTF-8 (byte {e.start + 1} is 0x{raw[e.start]:02x}); save the file as UTF-8", file=path.name, line=line
        ) from None


def read(path: Path) -> Any:
    """The value of a JSON file; a byte order mark is let by.  Raises FormatError or InputError."""
    return parse("".join(_text(raw, path, i) for i, raw in enumerate(_opened(path), 1)), file=path.name)


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered objects of a JSONL(.gz) file; blank lines are passed over.  Raises FormatError or InputError."""
    for number, raw in enumerate(_opened(path), 1):
        text = _text(raw, path, number).removeprefix(_BOM).strip()
        if not text:
            continue
        row = parse(text, file=path.name, line=number)
        if not isinstance(row, dict):
            raise FormatError(f"expected an object, found {type(row).__name__}", file=path.name, line=number)
        yield number, row


def first_text(path: Path) -> str:
    """The first line that is not blank, or ""; for telling layouts apart."""
    for number, raw in enumerate(_opened(path), 1):
        text = _text(raw, path, number).removeprefix(_BOM).strip()
        if text:
            return text
    return ""
