"""Strict JSON and plain text: what may enter the database or an import, and nothing else.

`json` alone accepts NaN, lets the last of two equal keys win, and reads lone surrogates that SQLite cannot store; NUL
is stored but cuts SQL's `length()` short, and PostgreSQL refuses it.  Here all of these are refused at the door, so
that whatever is stored can be exported and imported again.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from core.errors import FormatError, InputError
from core.text import text_problem

MAX_DEPTH = 64  # nesting of lists and objects; a prediction's trace needs 8
MAX_LINE_BYTES = 64 * 1024 * 1024  # of one JSONL line; a trace of 100 passages is about half a megabyte
MAX_FILE_BYTES = 1024 * 1024 * 1024  # of a JSON array, which is read as a whole
MAX_PACKED_RATIO = 200  # unpacked to packed bytes of a .gz; text packs about 3 to 10 times
FREE_BYTES = 16 * 1024 * 1024  # unpacked before the ratio counts
_INT64 = 2**63


def check_text(value: str, where: str, *, limit: int, empty: bool = True, line: bool = False) -> str:
    """Returns the value.

    Raises InputError naming `where` for NUL, lone surrogates, more than `limit` characters, or a blank; with `line` (a name, a label), for any
    control character.
    """
    problem = text_problem(value, line=line)
    if problem is None and len(value) > limit:
        problem = f"it has {len(value)} characters; at most {limit} are allowed"
    if problem is None and not empty and not value.strip():
        problem = "it is empty"
    if problem:
        raise InputError(f"{where} cannot be stored: {problem}")
    return value


def plain_problem(value: Any) -> str | None:
    """Why a value is not plain, storable JSON, with the path to the first wrong part; or None.  Never recurses."""
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


def dumps(value: Any) -> str:
    """One line of compact JSON, the same for equal values in the same order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class StrictDecoder:
    """JSON that goes on reading after a wrong value, so that a file's wrong rows can all be named."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_int=self._int, parse_float=self._float
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
            self._problems.append(f"the key '{twice[:80]}' occurs twice in one object")
        return found

    def _constant(self, name: str) -> None:
        self._problems.append(f"{name} is not JSON")

    def _int(self, digits: str) -> int:
        # the length first: int() of thousands of digits is slow and refused by Python
        if len(digits) > 20 or not -_INT64 <= int(digits) < _INT64:
            self._problems.append(f"the number {digits[:24]}{'...' if len(digits) > 24 else ''} needs more than 64 bits")
            return 0
        return int(digits)

    def _float(self, digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            self._problems.append(f"the number {digits[:24]} is too large")
            return 0.0
        return value

    def read(self, text: str, start: int = 0) -> tuple[Any, int, str | None]:
        """Value, end offset, and what is wrong with the value (or None).

        Raises FormatError where the syntax itself is broken.
        """
        self._problems.clear()
        try:
            value, end = self._json.raw_decode(text, start)
        except RecursionError:
            raise FormatError(f"nested deeper than {MAX_DEPTH}") from None
        except json.JSONDecodeError as e:
            raise FormatError(f"broken JSON: {e.msg} (character {e.pos - start + 1})") from None
        return value, end, self._problems[0] if self._problems else plain_problem(value)


class _Bounded:
    """A plain or gzipped file that is read up to its bounds: a small file must not unpack into a disk full of zeros."""

    def __init__(self, path: Path, file: IO[bytes], packed: int | None) -> None:
        self._path, self._file, self._packed, self._total = path, file, packed, 0

    def _counted(self, raw: bytes) -> bytes:
        self._total += len(raw)
        if self._packed is not None and (
            self._total > MAX_FILE_BYTES or self._total > max(FREE_BYTES, MAX_PACKED_RATIO * self._packed)
        ):
            raise FormatError(
                f"{self._packed} packed bytes unpack to more than {self._total - 1}: unpack it yourself", file=self._path
            )
        return raw

    def read(self, size: int) -> bytes:
        return self._counted(self._file.read(size))

    def readline(self, limit: int) -> bytes:
        return self._counted(self._file.readline(limit))


@contextmanager
def opened(path: Path) -> Iterator[_Bounded]:
    """A plain or gzipped file, told apart by its first bytes.

    Raises InputError where it cannot be read, FormatError for archives, damaged gzip, and what unpacks to too much.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            if head == b"PK\x03\x04":
                raise FormatError("this is a zip archive: unpack it, then import what is inside", file=path)
            if head[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield _Bounded(path, unpacked, path.stat().st_size)  # type: ignore[arg-type]
            else:
                yield _Bounded(path, file, None)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise FormatError(f"the gzip file is damaged or cut off ({e})", file=path) from None
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None


def read_text(path: Path) -> str:
    """A whole UTF-8 file, plain or gzipped, a byte order mark dropped.

    Raises FormatError for other encodings, InputError for a missing or huge file.
    """
    try:
        size = path.stat().st_size
    except OSError as e:
        raise InputError(f"cannot read {path}: {e.strerror or e}") from None
    if size > MAX_FILE_BYTES:
        raise InputError(f"{path} has {size} bytes; at most {MAX_FILE_BYTES} are read: split it, or use jsonl")
    parts = []
    with opened(path) as file:
        while part := file.read(1024 * 1024):
            parts.append(part)
    raw = b"".join(parts)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise FormatError("not UTF-8", file=path, line=raw.count(b"\n", 0, e.start) + 1) from None


_SPACE = " \t\r\n"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def array_rows(text: str, path: Path) -> Iterator[tuple[int, Any, str | None]]:
    """(line, value, problem or None) of each element of a JSON array.  Raises FormatError where the syntax is broken."""
    decoder, line, counted = StrictDecoder(), 1, 0
    at = _skip(text, 0)

    def line_of(offset: int) -> int:
        nonlocal line, counted
        line += text.count("\n", counted, offset)
        counted = max(counted, offset)
        return line

    if at >= len(text) or text[at] != "[":
        raise FormatError("expected a JSON list", file=path, line=line_of(at))
    at = _skip(text, at + 1)
    first = True
    while at < len(text) and (text[at] != "]" or not first):
        number = line_of(at)
        try:
            value, at, problem = decoder.read(text, at)
        except FormatError as e:
            raise FormatError(e.problem, file=path, line=number) from None
        yield number, value, problem
        first = False
        at = _skip(text, at)
        if at < len(text) and text[at] == ",":
            at = _skip(text, at + 1)
        elif at < len(text) and text[at] == "]":
            break
        else:
            raise FormatError("expected ',' or ']' after this row: the file is cut off or damaged", file=path, line=number)
    if at >= len(text):
        raise FormatError("the list is not closed: the file is cut off", file=path, line=line_of(len(text)))
    if _skip(text, at + 1) != len(text):
        raise FormatError("there is text after the end of the list", file=path, line=line_of(at))


def jsonl_rows(path: Path) -> Iterator[tuple[int, Any, str | None]]:
    """(line, value, problem or None) of each line that is not blank; memory is bounded by one line.

    Raises InputError when unreadable.
    """
    decoder, number = StrictDecoder(), 0
    with opened(path) as file:
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise FormatError(f"the line is longer than {MAX_LINE_BYTES} bytes", file=path, line=number)
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip(_SPACE)
                if not text:
                    continue
                value, end, problem = decoder.read(text)
                if end != len(text):
                    problem = "there is text after the end of the object"
            except UnicodeDecodeError:
                value, problem = None, "not UTF-8"
            except FormatError as e:
                value, problem = None, e.problem
            yield number, value, problem
