"""The one strict JSON reader, for plain and gzipped files.  What `json` accepts silently is refused with its place: duplicate keys, NaN, numbers
beyond 64 bits or double precision, and lone surrogates."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from core.errors import FormatError, InputError

MAX_LINE_BYTES = 64 * 1024 * 1024  # of one JSONL line; a trace of 100 passages is about half a megabyte
MAX_FILE_BYTES = 1024 * 1024 * 1024  # of an untrusted JSON array, which is read as a whole
MAX_PACKED_RATIO = 200  # uncompressed to compressed bytes of a .gz; text compresses 3 to 10 times
FREE_BYTES = 16 * 1024 * 1024  # uncompressed bytes below which the ratio is not checked
MAX_LINE_VALUES = 2_000_000  # of one JSONL line, by its commas: a short value takes 30 times its text in memory
MAX_ID_CHARS = 200
MAX_DEPTH = 64  # nesting of lists and objects; a prediction's trace needs 8
_BOM = "\ufeff"
_INT64 = 2**63
_SPACE = " \t\r\n"


def _skip(text: str, position: int) -> int:
    """The position of the first character from `position` on that is no white space."""
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _repeated(values: Iterable[str]) -> str:
    """The first value that occurs more than once; there is one."""
    return next(value for value, count in Counter(values).items() if count > 1)


def dumps(value: Any) -> str:
    """One line of compact JSON, the same for equal values in the same order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _LongInteger(str):
    """The digits of an integer beyond 64 bits: allowed as an `id`, which is a name."""


class Decoder:
    """A JSON decoder that continues after a wrong value, so that all wrong rows of a file can be reported."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._long: list[_LongInteger] = []  # that are no id
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_int=self._int, parse_float=self._float
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        body = dict(pairs)
        if self._long and isinstance(name := body.get("id"), _LongInteger):
            self._long.remove(name)
            body["id"] = str(name)
        if len(body) != len(pairs):
            self._problems.append(f"the key '{_repeated(key for key, _ in pairs)[:80]}' occurs twice in one object; keep one")
        return body

    def _constant(self, name: str) -> None:
        self._problems.append(f"{name} is not JSON; write a number or null")

    def _int(self, digits: str) -> int | _LongInteger:
        # the length first: int() of thousands of digits is slow and refused by Python
        if len(digits) > 20 or not -_INT64 <= int(digits) < _INT64:
            self._long.append(_LongInteger(digits))
            return self._long[-1]
        return int(digits)

    def _float(self, digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            self._problems.append(f"the number {digits[:24]} is too large")
            return 0.0
        return value

    def read(self, text: str, start: int = 0) -> tuple[Any, int, str | None]:
        """(value, end offset, what is wrong with the value or None).

        Raises FormatError with the line if the syntax itself is broken.
        """
        self._problems.clear()
        self._long.clear()
        try:
            value, end = self._json.raw_decode(text, start)
        except RecursionError:
            raise FormatError(f"nested deeper than {MAX_DEPTH}", line=text.count("\n", 0, start) + 1) from None
        except json.JSONDecodeError as e:
            raise FormatError(f"not JSON ({e.msg} at column {e.colno}); correct the file", line=e.lineno) from None
        for digits in self._long[:1]:
            self._problems.append(f"the number {digits[:24]}{'...' if len(digits) > 24 else ''} needs more than 64 bits")
        # what the parser could still follow may be too deep for the code that reads, compares or writes the value
        if _deeper_than(value, MAX_DEPTH):
            self._problems.append(f"nested deeper than {MAX_DEPTH}")
        # A \ud800 escape is JSON but no text: it cannot be printed or stored.
        if not self._problems and text.find("\\", start, end) >= 0 and "\\ud" in text[start:end].lower():
            try:
                dumps(value).encode()
            except UnicodeEncodeError:
                self._problems.append("holds a lone surrogate (half of a character)")
        return value, end, self._problems[0] if self._problems else None


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested more than `levels` deep.  Never recurses."""
    layer = [value]
    for _ in range(levels + 1):
        containers = [v for v in layer if type(v) in (dict, list)]
        if not containers:
            return False
        layer = [part for c in containers for part in (c.values() if type(c) is dict else c)]
    return True


def parse(text: str, *, file: object = None, line: int | None = None) -> Any:
    """The value of one JSON text.  Raises FormatError with the line.

    >>> parse('{"a": [1]}')
    {'a': [1]}
    """
    text = text.removeprefix(_BOM)
    try:
        value, end, problem = Decoder().read(text, _skip(text, 0))
        if _skip(text, end) != len(text):
            raise FormatError("not JSON (text after the end of the value); correct the file", line=text.count("\n", 0, end) + 1)
    except FormatError as e:
        raise FormatError(e.problem, file=file, line=e.line if line is None else line) from None
    if problem:
        raise FormatError(problem, file=file, line=line)
    return value


class _Bounded:
    """A plain or gzipped file read within bounds, so that a small file cannot decompress to terabytes."""

    def __init__(self, path: Path, file: IO[bytes], size: int, limit: int) -> None:
        """`size`: bytes on the disk; `limit`: how many may be read."""
        self._path, self._file, self._size, self._rest = path, file, size, limit

    def _within(self, raw: bytes) -> bytes:
        self._rest -= len(raw)
        if self._rest < 0:
            raise FormatError(
                f"{self._size} compressed bytes decompress to more than {MAX_PACKED_RATIO} times as many, or to more than "
                f"{MAX_FILE_BYTES}: decompress the file yourself",
                file=self._path,
            )
        return raw

    def read(self, size: int) -> bytes:
        return self._within(self._file.read(min(size, self._rest + 1)))

    def readline(self, limit: int) -> bytes:
        return self._within(self._file.readline(min(limit, self._rest + 1)))


@contextmanager
def open_file(path: Path, *, bounded: bool = True) -> Iterator[_Bounded]:
    """Opens a plain or gzipped file, recognised by its name and first bytes.

    A gzipped file may decompress to MAX_PACKED_RATIO times its size; `bounded`: it is untrusted, and may decompress to MAX_FILE_BYTES at
    most.  Raises InputError if it cannot be read, FormatError for archives, damaged gzip, and a file beyond the limit.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(0)
            if head == b"PK\x03\x04":
                raise FormatError("this is a zip archive: unpack it, then read what is inside", file=path)
            size = path.stat().st_size
            if head[:2] == b"\x1f\x8b" or path.name.lower().endswith(".gz"):
                limit = max(FREE_BYTES, MAX_PACKED_RATIO * size)
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield _Bounded(path, unpacked, size, min(limit, MAX_FILE_BYTES) if bounded else limit)  # type: ignore[arg-type]
            else:
                yield _Bounded(path, file, size, _INT64)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise FormatError(f"the gzip file is damaged or truncated ({e}); copy it again", file=path) from None
    except OSError as e:
        raise InputError(f"{path} cannot be read ({e.strerror or e}); give the path of an existing file") from None


def read_text(path: Path, *, bounded: bool = True) -> str:
    """A whole UTF-8 file, plain or gzipped, without its byte order mark.

    Raises FormatError for other encodings, InputError for a missing file and, if `bounded`, a huge one.
    """
    with open_file(path, bounded=bounded) as file:
        if bounded and (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise InputError(f"{path} has {size} bytes; the limit is {MAX_FILE_BYTES}: split it, or use JSONL")
        raw = b"".join(iter(lambda: file.read(1024 * 1024), b""))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise FormatError(_not_utf8(raw, e.start), file=path, line=raw.count(b"\n", 0, e.start) + 1) from None


def _not_utf8(raw: bytes, position: int) -> str:
    column = position - raw.rfind(b"\n", 0, position)
    return f"not UTF-8 (byte {column} is 0x{raw[position]:02x}); save the file as UTF-8"


def array_rows(text: str, path: Path) -> Iterator[tuple[int, Any, str | None]]:
    """(line, value, problem or None) of each element of a JSON array.  Raises FormatError if the syntax is broken."""
    decoder, line, line_offset = Decoder(), 1, 0
    position = _skip(text, 0)

    def line_of(offset: int) -> int:
        nonlocal line, line_offset
        line += text.count("\n", line_offset, offset)
        line_offset = max(line_offset, offset)
        return line

    if not text.startswith("[", position):
        raise FormatError("expected a JSON list", file=path, line=line_of(position))
    position = _skip(text, position + 1)
    is_closed = text.startswith("]", position)
    while position < len(text) and not is_closed:
        number = line_of(position)
        try:
            value, position, problem = decoder.read(text, position)
        except FormatError as e:
            raise FormatError(e.problem, file=path, line=e.line) from None
        yield number, value, problem
        position = _skip(text, position)
        if text.startswith(",", position):
            position = _skip(text, position + 1)
        elif not (is_closed := text.startswith("]", position)):
            raise FormatError("expected ',' or ']' after this row: the file is cut off or damaged", file=path, line=number)
    if not is_closed:
        raise FormatError("the list is not closed: the file is cut off", file=path, line=line_of(len(text)))
    if _skip(text, position + 1) != len(text):
        raise FormatError("there is text after the end of the list", file=path, line=line_of(position))


def jsonl_rows(path: Path, *, bounded: bool = True) -> Iterator[tuple[int, Any, str | None]]:
    """(line, value, problem or None) of each line that is not blank; memory is bounded by one line.

    Raises InputError if unreadable, FormatError for damaged gzip and overlong lines.
    """
    decoder = Decoder()
    for number, text, problem in _lines(path, bounded):
        value = None
        try:
            if text.count(",") > MAX_LINE_VALUES:
                raise FormatError(f"the line has more than {MAX_LINE_VALUES} values")
            if problem is None:
                value, end, problem = decoder.read(text)
                problem = problem if end == len(text) else "there is text after the end of the object"
        except FormatError as e:
            problem = e.problem
        yield number, value, problem


def _lines(path: Path, bounded: bool) -> Iterator[tuple[int, str, str | None]]:
    """(line, text, what is wrong with its encoding or None) of each line that is not blank."""
    with open_file(path, bounded=bounded) as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
            if len(raw) > MAX_LINE_BYTES:
                raise FormatError(f"the line is longer than {MAX_LINE_BYTES} bytes", file=path, line=number)
            try:
                if text := raw.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield number, text, None
            except UnicodeDecodeError as e:
                yield number, "", _not_utf8(raw, e.start)


@contextmanager
def _by_name(path: Path) -> Iterator[None]:
    """Errors name the file without its folder, because pages show them."""
    try:
        yield
    except FormatError as e:
        raise FormatError(e.problem, file=path.name, line=e.line, field=e.field) from None


def read(path: Path) -> Any:
    """The value of a JSON file; a byte order mark is ignored.  Raises FormatError or InputError."""
    with _by_name(path):
        return parse(read_text(path, bounded=False))


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbered objects of a JSONL(.gz) file; blank lines are skipped.  Raises FormatError or InputError."""
    with _by_name(path):
        for number, row, problem in jsonl_rows(path, bounded=False):
            if problem is None and not isinstance(row, dict):
                problem = f"expected an object, found {type(row).__name__}"
            if problem is not None:
                raise FormatError(problem, line=number)
            yield number, row


def first_text(path: Path) -> str:
    """The first line that is not blank, or ""; used to recognise layouts."""
    with _by_name(path):
        for number, text, problem in _lines(path, bounded=False):
            if problem is not None:
                raise FormatError(problem, line=number)
            return text
    return ""


class FieldReader:
    """Reads the fields of one record.  Errors name the file, the line or the question, and the field."""

    def __init__(self, file: object, *, line: int | None = None, question: str = "", parent: str = "") -> None:
        """`parent`: the place of the record in the file, before the names of its fields."""
        self.file, self.line, self._question, self._parent = file, line, question, parent

    def error(self, problem: str, field: str) -> FormatError:
        prefix = f"question '{self._question[:80]}': " if self._question else ""
        return FormatError(prefix + problem, file=self.file, line=self.line, field=f"{self._parent}{field}"[:120] or None)

    def text(self, value: Any, field: str, *, empty: bool = False) -> str:
        if not isinstance(value, str) or not (empty or value.strip()):
            raise self.error(f"expected text, found {'nothing' if value is None else f'{value!r:.80}'}", field)
        return value

    def id(self, value: Any, field: str) -> str:
        """An id, which is a name: text of at most MAX_ID_CHARS characters, or a whole number, kept digit by digit."""
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value.strip():
            found = "nothing" if value is None else f"{value!r:.80}"
            raise self.error(f"expected an id (text or a whole number), found {found}", field)
        if len(value) > MAX_ID_CHARS:
            raise self.error(f"the id has {len(value)} characters; at most {MAX_ID_CHARS} are allowed", field)
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
        """The aliases of one answer.  Raises FormatError for a repeated one."""
        answers = self.texts(value, field)
        if len(set(answers)) < len(answers):
            raise self.error(f"the answer '{_repeated(answers)[:80]}' occurs twice in one list of aliases; keep one", field)
        return answers
