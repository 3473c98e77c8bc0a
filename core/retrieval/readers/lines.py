"""Shared by all readers: limits, rejected rows, and bounded reading of lines from a plain or gzipped file."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from core.errors import FormatError, InputError
from core.json_io import FREE_BYTES, MAX_PACKED_RATIO
from core.settings import Settings
from core.text import storable

MB = 1024 * 1024
UNLIMITED = 2**62
UNPACKED_TIMES = 10  # text compresses three or four times; more than ten may be a zip bomb
UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading a file: too many bytes, lines or pages are an error; only an overlong line is rejected on its own."""

    max_bytes: int  # of the file as it lies on disk
    max_unpacked_bytes: int  # of a gzipped file's content
    max_lines: int
    max_pages: int
    max_line_chars: int

    @classmethod
    def for_uploads(cls, settings: Settings) -> Limits:
        size = settings.max_upload_mb * MB
        return cls(size, size * UNPACKED_TIMES, settings.max_upload_lines, settings.max_upload_pages, settings.max_line_chars)

    @classmethod
    def for_own_files(cls, settings: Settings) -> Limits:
        """For files given on the command line: no limits on size, lines and pages."""
        return cls(UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED, settings.max_line_chars)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names that a field may have in JSON lines, Parquet and Arrow files; the first that is there is read."""

    id: tuple[str, ...] = ("id", "_id", "docid", "doc_id", "passage_id", "pid")
    text: tuple[str, ...] = ("text", "contents", "body", "passage", "content")
    title: tuple[str, ...] = ("title",)

    def chosen(self) -> str:
        """What differs from the defaults, as text; empty if nothing does."""
        return ", ".join(
            f"{n}={getattr(self, n)[0]}" for n in self.__slots__ if getattr(self, n) != getattr(DEFAULT_COLUMNS, n)
        )


DEFAULT_COLUMNS = Columns()


def wrong_type(what: str, names: Mapping[str, str | None], title: object, identity: object) -> str:
    """Why a row's title or id cannot be used, empty if they can.  `what`: field or column; `names`: theirs in the file."""
    if not isinstance(title, (str, type(None))):
        return f"{what} '{names['title']}' is a {type(title).__name__}; expected text"
    if not isinstance(identity, (str, int, type(None))) or isinstance(identity, bool):
        return f"{what} '{names['id']}' is a {type(identity).__name__}; expected text or a whole number"
    if isinstance(identity, int) and abs(identity) >= 2**63:
        return f"{what} '{names['id']}' is a number of more than 64 bits; write it as text"
    return ""


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

    read: int = 0  # lines or pages
    blank: int = 0
    header: int = 0
    rejected: int = 0
    documents: int = 0
    passages: int = 0  # more than `documents` where long ones were cut


class Row(NamedTuple):
    """One document as read, before cleaning and chunking.  An empty id is replaced by file name and line."""

    number: int
    id: str
    title: str
    text: str


@dataclass
class Source:
    """A file being read: its bounds, its tally, and where rejected rows go."""

    path: Path
    limits: Limits
    on_reject: Callable[[Rejected], None]
    tally: Tally = field(default_factory=Tally)
    unit: str = "line"
    columns: Columns = DEFAULT_COLUMNS

    @property
    def name(self) -> str:
        """The name for storing and display: lone surrogates of another encoding are replaced."""
        return storable(self.path.name)

    @property
    def stem(self) -> str:
        """The file's name without its suffixes, in letters, digits, '.', '_' and '-': the start of ids, and a title."""
        name = self.path.name.removesuffix(".gz").rpartition(".")[0] or self.path.name
        return re.sub(r"[^\w.-]+", "-", name)[:100]

    def reject(self, number: int, reason: str) -> None:
        self.tally.rejected += 1
        self.on_reject(Rejected(self.name, number, reason, self.unit))

    def check_size(self) -> None:
        """Raises InputError when there is no such file, or it is empty or larger than allowed."""
        try:
            size = self.path.stat().st_size
        except OSError as e:
            raise InputError(f"{self.path} cannot be read ({e.strerror}); give the path of an existing file") from e
        if not self.path.is_file():
            raise InputError(f"{self.path} is not a file; give a .tsv, .jsonl, .parquet, .arrow, .txt, .md or .pdf file")
        if size > self.limits.max_bytes:
            raise InputError(
                f"{self.path.name} has {size / MB:.1f} MB; at most {self.limits.max_bytes // MB} MB are read. "
                "Split it, or raise AMBISCOPE_MAX_UPLOAD_MB"
            )

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines without their ends; lines that are not UTF-8, hold NUL or are too long are rejected.

        Raises FormatError for a damaged or truncated gzip file, InputError past a limit.
        """
        try:
            with self.path.open("rb") as raw:
                if self.path.name.lower().endswith(".gz"):
                    with gzip.open(raw) as unpacked:
                        yield from self._lines(cast(BinaryIO, unpacked))
                else:
                    yield from self._lines(raw)
        except EOFError as e:
            raise FormatError("the gzip file is truncated; copy it again", file=self.path.name, line=self.tally.read) from e
        except (gzip.BadGzipFile, zlib.error) as e:
            raise FormatError(f"not a valid gzip file ({e}); compress it again", file=self.path.name) from e
        except OSError as e:
            raise InputError(f"{self.path.name} cannot be read ({e.strerror or e}); check the file") from e

    def _lines(self, stream: BinaryIO) -> Iterator[tuple[int, str]]:
        limit = 4 * self.limits.max_line_chars + 2  # UTF-8 takes at most 4 bytes a character
        taken = 0
        while raw := stream.readline(limit + 1):
            taken += len(raw)
            self.tally.read += 1
            number = self.tally.read
            if number > self.limits.max_lines:
                raise InputError(
                    f"{self.path.name} has more than {self.limits.max_lines} lines; "
                    "split it, or raise AMBISCOPE_MAX_UPLOAD_LINES"
                )
            huge = len(raw) > limit
            while (
                huge and not raw.endswith(b"\n") and (raw := stream.readline(MB))
            ):  # skip the rest of the line in bounded pieces
                taken += len(raw)
                self._check_unpacked(taken)
            self._check_unpacked(taken)
            if huge:
                self.reject(number, self._too_long())
            elif (text := self._decoded(number, raw)) is not None:
                yield number, text

    def _check_unpacked(self, taken: int) -> None:
        if taken > self.limits.max_unpacked_bytes:
            raise InputError(
                f"{self.path.name} unpacks to more than {self.limits.max_unpacked_bytes // MB} MB; "
                "split it, or raise AMBISCOPE_MAX_UPLOAD_MB"
            )
        if taken > self._max_unpacked:
            raise InputError(
                f"{self.path.name} unpacks to more than {MAX_PACKED_RATIO} times its size, which looks like an attack; "
                "if it is none, unpack the file yourself"
            )

    @cached_property
    def _max_unpacked(self) -> int:
        """Bytes that a gzipped file may unpack to, by its size."""
        packed = self.path.name.lower().endswith(".gz")
        return max(FREE_BYTES, MAX_PACKED_RATIO * self.path.stat().st_size) if packed else UNLIMITED

    def _too_long(self) -> str:
        return f"the line has more than {self.limits.max_line_chars} characters; split it, or raise AMBISCOPE_MAX_LINE_CHARS"

    def _decoded(self, number: int, raw: bytes) -> str | None:
        """The line as text, or None after it was rejected."""
        if number == 1:
            raw = raw.removeprefix(UTF8_BOM)
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as e:
            self.reject(number, f"not UTF-8 (byte {e.start + 1} is 0x{raw[e.start]:02x}); save the file as UTF-8")
            return None
        if "\0" in text:
            self.reject(number, "contains a NUL character; the file is binary or damaged")
            return None
        if len(text) > self.limits.max_line_chars:
            self.reject(number, self._too_long())
            return None
        return text
