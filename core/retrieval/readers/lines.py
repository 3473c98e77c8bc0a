"""Shared by all readers: limits, values, rejected rows, and bounded reading of lines from a plain or gzipped file."""

from __future__ import annotations

import hashlib
import io
import math
import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import Any, NamedTuple

from core import json_io
from core.errors import FormatError, InputError
from core.retrieval.readers.encodings import SAVE_ADVICE, UTF8, encoding_of
from core.settings import Settings
from core.text import storable

MB = 1024 * 1024
UNLIMITED = 2**62
UNPACKED_TIMES = 10  # text compresses three or four times; more than ten may be a zip bomb
HTML = (".html", ".htm")  # pages say their encoding
UTF8_BOM = b"\xef\xbb\xbf"
MAX_STEM_CHARS = 120
MAX_DOUBTFUL = 20  # pages that are named
_UNTITLED = ("index", "_index", "readme")  # names that say nothing: the folder's is the title


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading a file.  Too many bytes, lines or pages are an error; an overlong line is only rejected."""

    max_bytes: int  # of the file on disk
    max_unpacked_bytes: int  # of a gzipped file's content
    max_lines: int
    max_pages: int
    max_line_chars: int
    max_seconds: int = UNLIMITED  # to read all files of an upload

    @classmethod
    def for_uploads(cls, settings: Settings) -> Limits:
        size, seconds = settings.max_upload_mb * MB, 60 * settings.max_upload_minutes
        lines, pages = settings.max_upload_lines, settings.max_upload_pages
        return cls(size, size * UNPACKED_TIMES, lines, pages, settings.max_line_chars, seconds)

    @classmethod
    def for_own_files(cls, settings: Settings) -> Limits:
        """No limits on size, lines, pages or time, for files given on the command line."""
        return cls(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, settings.max_line_chars)

    @property
    def is_upload(self) -> bool:
        return self.max_seconds < UNLIMITED


@dataclass(frozen=True, slots=True)
class Columns:
    """The names that a field may have in JSON lines, Parquet and Arrow files.  The first one present is read."""

    id: tuple[str, ...] = ("id", "_id", "docid", "doc_id", "passage_id", "pid")
    text: tuple[str, ...] = ("text", "contents", "body", "passage", "content")
    title: tuple[str, ...] = ("title",)

    def names_in(self, existing: Container[str]) -> dict[str, str]:
        """The name of each field that is present."""
        choices = ((f, next((n for n in getattr(self, f) if n in existing), "")) for f in ("id", "title", "text"))
        return {field: name for field, name in choices if name}

    def changes(self) -> str:
        """The differences from the defaults as text; empty if there are none."""
        return ", ".join(
            f"{n}={getattr(self, n)[0]}" for n in self.__slots__ if getattr(self, n) != getattr(DEFAULT_COLUMNS, n)
        )


DEFAULT_COLUMNS = Columns()


def plain(value: object) -> object:
    """Undoes what data frames do to a value: NaN becomes None, 4.0 a whole number (exact up to 2**53)."""
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected row.  `number` counts lines (pages of a PDF) of the file from 1; 0 with unit "file": the whole file."""

    file: str
    number: int
    reason: str
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.file}, {self.unit} {self.number}: {self.reason}" if self.number else f"{self.file}: {self.reason}"


@dataclass(slots=True)
class Tally:
    """Counts of a file's rows; for tables, `read == blank + header + rejected + documents`."""

    file: str = ""
    read: int = 0  # lines, or pages of a PDF
    blank: int = 0
    header: int = 0
    rejected: int = 0
    documents: int = 0
    passages: int = 0  # more than `documents` where long ones were cut
    encoding: str = ""  # of a document that is not UTF-8
    doubtful: tuple[int, ...] = ()  # the first pages whose columns may be read in a wrong order

    @classmethod
    def of(cls, counts: dict[str, Any]) -> Tally:
        """A tally from the counts that `asdict` and JSON made of one."""
        return cls(**counts | {"doubtful": tuple(counts.get("doubtful", ()))})

    def of_reader(self) -> dict[str, Any]:
        """The counts that are made while a file is read.  Its rows are counted when they get ids or are rejected."""
        return {
            "read": self.read,
            "blank": self.blank,
            "header": self.header,
            "encoding": self.encoding,
            "doubtful": self.doubtful,
        }


class CorpusFile(NamedTuple):
    """A file and its name in the corpus, which is its path in the given folder, with "/"."""

    path: Path
    name: str


class DocumentRow(NamedTuple):
    """One document as read, before cleaning and chunking.  If it has no id, it gets one from the file's name and its position
    in the file."""

    number: int
    id: str
    title: str
    text: str
    place: str | None = None  # the end of the id; by default "-" and the number
    passages: tuple[str, ...] = ()  # where it is cut by its structure


@dataclass
class Source:
    """A corpus file while it is read: its path, name, reading options and limits, its tally (filled while passages are read),
    and the list of rejected rows."""

    path: Path
    limits: Limits
    on_reject: Callable[[Rejected], None]
    tally: Tally = field(default_factory=Tally)
    unit: str = "line"
    columns: Columns = DEFAULT_COLUMNS
    name: str = ""  # in the corpus; the file's name if none is given
    uncut: bool = False  # a row is a passage, however long it is

    def __post_init__(self) -> None:
        self.name = storable(self.name or self.path.name)

    @property
    def stem(self) -> str:
        """The start of ids: the name in letters, digits, '/', '.', '_' and '-', with a digest if it is cut."""
        name = unicodedata.normalize("NFC", self.name.removesuffix(".gz"))
        stem = re.sub(r"[^\w./-]+", "-", name)
        if len(stem) > MAX_STEM_CHARS:
            stem = f"{stem[:MAX_STEM_CHARS]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return stem

    @property
    def title(self) -> str:
        """The title of a document that has none: the file's name in words, or its folder's."""
        path = PurePosixPath(self.name)
        name = path.parent.name if path.stem.lower() in _UNTITLED and path.parent.name else path.stem
        return name.replace("_", " ").replace("-", " ").strip()[:100]

    def row(self, number: int, label: str, names: Mapping[str, str], values: Mapping[str, Any]) -> DocumentRow | None:
        """A row of a table, or None after it was rejected.  `label`: field or column.  `names`: theirs in the file.  `values`:
        by field.

        Numbers are text as a title, whole numbers also as an id.
        """
        identity, title, text = (plain(values.get(f)) for f in ("id", "title", "text"))
        for field_name, value, types, expected in (
            ("text", text, (str,), "text"),
            ("title", title, (str, int, float, NoneType), "text"),
            ("id", identity, (str, int, NoneType), "text or a whole number"),
        ):
            if isinstance(value, bool) or not isinstance(value, types):
                kind = "empty" if value is None else f"a {type(value).__name__}"
                self.reject(number, f"{label} '{names[field_name]}' is {kind}; expected {expected}")
                return None
        if isinstance(identity, int) and abs(identity) >= 2**63:
            self.reject(number, f"{label} '{names['id']}' is a number of more than 64 bits; write it as text")
            return None
        identity, title = ("" if value is None else str(value).strip() for value in (identity, title))
        return DocumentRow(number, identity, title, str(text))

    def reject(self, number: int, reason: str) -> None:
        self.tally.rejected += 1
        self.on_reject(Rejected(self.name, number, reason, self.unit))

    def check_size(self) -> None:
        """Raises InputError if there is no such file, or if it is larger than allowed."""
        try:
            size = self.path.stat().st_size
        except OSError as e:
            raise InputError(f"{self.path} cannot be read ({e.strerror}); give the path of an existing file") from e
        if not self.path.is_file():
            raise InputError(f"{self.path} is not a file; give files, or a folder of files")
        if size > self.limits.max_bytes:
            raise InputError(
                f"{self.name} has {size / MB:.1f} MB; at most {self.limits.max_bytes // MB} MB are read. "
                "Split it, or raise AMBISCOPE_MAX_UPLOAD_MB"
            )

    def max_growth(self) -> int:
        """The number of characters that a file may grow to, through anything in it that packs or repeats them."""
        return max(json_io.FREE_BYTES, json_io.MAX_PACKED_RATIO * self.path.stat().st_size)

    def too_much(self) -> FormatError:
        size, limit = self.path.stat().st_size, self.max_growth() // MB
        problem = (
            f"its {size} bytes become more than {limit} MB of text, which looks like an attack; split it, or save its text"
        )
        return FormatError(problem, file=self.name)

    def lines(self) -> Iterator[tuple[int, str]]:
        """The numbered lines of a table, without their ends.  Blank ones are counted; those that aren't UTF-8, contain NUL or
        are too long are rejected.

        Raises FormatError for a damaged or truncated gzip file, InputError past a limit.
        """
        try:
            with json_io.open_file(self.path, bounded=False) as stream:
                for number, line in self._lines(stream.readline, self.reject):
                    if line.strip():
                        yield number, line
                    else:
                        self.tally.blank += 1
        except FormatError as e:
            raise FormatError(e.problem, file=self.name, line=e.line) from None

    def document_lines(self) -> Iterator[tuple[int, str]]:
        """The numbered lines of running text, in the encoding of the whole document, which the tally names if it isn't UTF-8.

        A document is read whole or not at all.  Raises FormatError if its encoding is not clear or a line cannot be read, InputError past
        a limit.
        """
        try:
            encoding = encoding_of(self.path, self.name, is_html=self.path.suffix.lower() in HTML)
            self.tally.encoding = "" if encoding == UTF8 else encoding
            with self.path.open("rb") as raw:
                text = io.TextIOWrapper(raw, encoding, newline="\n")
                readline = raw.readline if encoding == UTF8 else lambda limit: text.readline(limit).encode()
                yield from self._lines(readline, self._refuse)
        except UnicodeError as e:
            raise FormatError(f"it seems to be {encoding}, but a part is not ({e}); {SAVE_ADVICE}", file=self.name) from e
        except OSError as e:
            raise InputError(f"{self.name} cannot be read ({e.strerror or e}); check the file") from e

    def _refuse(self, number: int, reason: str) -> None:
        raise FormatError(reason, file=self.name, line=number)

    def _lines(self, readline: Callable[[int], bytes], report: Callable[[int, str], None]) -> Iterator[tuple[int, str]]:
        limit = 4 * self.limits.max_line_chars + 2  # UTF-8 takes at most 4 bytes a character
        size = 0
        while raw := readline(limit + 1):
            size += len(raw)
            self.tally.read += 1
            number = self.tally.read
            if number > self.limits.max_lines:
                raise InputError(
                    f"{self.name} has more than {self.limits.max_lines} lines; split it, or raise AMBISCOPE_MAX_UPLOAD_LINES"
                )
            is_too_long = len(raw) > limit
            while is_too_long and not raw.endswith(b"\n") and (raw := readline(MB)):  # skips the rest in bounded pieces
                size += len(raw)
                self._check_unpacked(size)
            self._check_unpacked(size)
            text, problem = ("", self._too_long()) if is_too_long else self._decoded(number, raw)
            if problem:
                report(number, problem)
            else:
                yield number, text

    def _check_unpacked(self, size: int) -> None:
        if size > self.limits.max_unpacked_bytes:
            raise InputError(
                f"{self.name} unpacks to more than {self.limits.max_unpacked_bytes // MB} MB; "
                "split it, or raise AMBISCOPE_MAX_UPLOAD_MB"
            )

    def _too_long(self) -> str:
        return f"the line has more than {self.limits.max_line_chars} characters; split it, or raise AMBISCOPE_MAX_LINE_CHARS"

    def _decoded(self, number: int, raw: bytes) -> tuple[str, str]:
        """The line as text, and its fault, if any."""
        if number == 1:
            raw = raw.removeprefix(UTF8_BOM)
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as e:
            return "", f"not UTF-8 (byte {e.start + 1} is 0x{raw[e.start]:02x}); save the file as UTF-8"
        if "\0" in text:
            return "", "contains a NUL character; the file is binary or damaged"
        return text, self._too_long() if len(text) > self.limits.max_line_chars else ""
