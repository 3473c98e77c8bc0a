"""Files -> passages, one streaming interface for every format.

A reader turns a `Source` into rows; the steps that all formats share (cleaning, ids, duplicates, chunks of PASSAGE_WORDS words or CHUNK_CHARS characters) are
here.  A new format is one function and one entry in `READERS`; plugins add to them (core.plugins).  Files of an upload are read in a process of
its own (sandbox.py): what they make it do keeps nobody waiting.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import FormatError, InputError, PluginError
from core.registry import Entry, Registry
from core.retrieval.readers.columns import read_arrow, read_parquet
from core.retrieval.readers.documents import read_docx, read_markup, read_pdf, read_text
from core.retrieval.readers.lines import Columns, DocumentRow, Limits, Rejected, Source
from core.retrieval.readers.sandbox import StoppedError, parsed
from core.retrieval.readers.structure import BREAK
from core.retrieval.readers.tables import MAX_ID_CHARS, read_jsonl, read_tsv
from core.text import chunk_words, text_problem
from core.types import Passage

MAX_TITLE_CHARS = 300
PASSAGE_BYTES = 100  # that a passage counts for beside its text and title
BATCH_ROWS = 100  # rows that a process hands over together
Reader = Callable[[Source], Iterator[DocumentRow]]


@dataclass(frozen=True, slots=True)
class ReaderEntry(Entry):
    """The reader for a file suffix, which is its name.  `target`: a generator `read(source) -> Iterator[DocumentRow]`."""

    is_uploaded: bool = True  # also from the Corpora page and in a zip

    def problem(self, name: str) -> str:
        if not re.fullmatch(r"(\.[a-z0-9]+)+", name):
            return f"'{name[:40]}' is no suffix; write a dot and lower-case letters or digits, as in .tsv"
        return Entry.problem(self, name)


READERS = Registry(
    "reader",
    {
        ".tsv": ReaderEntry(read_tsv, "id, text and title, with tabs", "psgs_w100.tsv of Karpukhin et al. 2020"),
        ".tsv.gz": ReaderEntry(read_tsv, "the same, compressed", "psgs_w100.tsv of Karpukhin et al. 2020"),
        ".jsonl": ReaderEntry(read_jsonl, "an object a line, with text, title and id"),
        ".jsonl.gz": ReaderEntry(read_jsonl, "the same, compressed"),
        ".txt": ReaderEntry(read_text, "plain text, a passage a paragraph"),
        ".md": ReaderEntry(partial(read_markup, kind="md"), "Markdown"),
        ".markdown": ReaderEntry(partial(read_markup, kind="md"), "Markdown"),
        ".mdx": ReaderEntry(partial(read_markup, kind="mdx"), "Markdown with components"),
        ".rst": ReaderEntry(partial(read_markup, kind="rst"), "reStructuredText"),
        ".html": ReaderEntry(partial(read_markup, kind="html"), "HTML"),
        ".htm": ReaderEntry(partial(read_markup, kind="html"), "HTML"),
        ".docx": ReaderEntry(read_docx, "Word"),
        ".pdf": ReaderEntry(read_pdf, "PDF with text"),
        # their size is not known before they are unpacked
        ".parquet": ReaderEntry(read_parquet, "Parquet", is_uploaded=False),
        ".arrow": ReaderEntry(read_arrow, "Arrow, as `datasets` saves it", is_uploaded=False),
    },
    "ambiscope.readers",
    ReaderEntry,
)
ZIP = ".zip"  # of a folder (zips.py)
# control characters would break the row file, a log or a terminal; white space is collapsed anyway
_CONTROLS: dict[int, str | None] = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
# no width, and in no word that is searched for: break opportunities, joiners, byte order marks, marks of direction
_CONTROLS |= dict.fromkeys(
    [0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x206A), 0xFEFF]
)
# ligatures, which PDFs hold as one character: "ﬁ" is "fi"
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB50)}
_DIVIDED = re.compile(
    "(?<=\\w)[\u2010\u00ad]\\s+(?=[^\\W\\d_])|\u00ad"
)  # U+2010 and the soft hyphen, used for hyphenation; not a plain "-"


def suffix_of(name: str, suffixes: Iterable[str]) -> str:
    """The longest of these suffixes that a file's name ends in, in any case; empty if there is none."""
    return max((suffix for suffix in suffixes if name.lower().endswith(suffix)), key=len, default="")


def in_zip() -> tuple[str, ...]:
    """The suffixes of the files that are read from a zip."""
    return tuple(suffix for suffix, entry in READERS.items() if entry.is_uploaded)


def uploaded() -> tuple[str, ...]:
    """The suffixes that the Corpora page accepts."""
    return (*in_zip(), ZIP)


def reader_of(path: Path) -> str:
    """The suffix of a file's reader.  Raises InputError for one that is not registered."""
    if suffix := suffix_of(path.name, READERS):
        return suffix
    raise InputError(f"{path.name}: no reader for this kind of file; use one of {', '.join(READERS)}")


def _rows(suffix: str, source: Source) -> Iterator[DocumentRow]:
    """The rows of a file.  Raises FormatError, also if a plugin's reader fails or yields something other than rows."""
    reader: Reader = READERS.resolve(suffix)
    try:
        with READERS.running(suffix):
            for row in reader(source):
                if not isinstance(row, DocumentRow) or not all(isinstance(text, str) for text in (row.id, row.title, row.text)):
                    raise TypeError(f"{str(row)[:80]} is no DocumentRow of texts (core.retrieval.readers.lines)")
                yield row
    except PluginError as error:
        raise FormatError(str(error), file=source.name) from error


def _clean(text: str) -> str:
    """Removes control characters, joins words hyphenated at line ends, and collapses white space."""
    return " ".join(_DIVIDED.sub("", text.translate(_CONTROLS)).split())


def _clean_lines(text: str) -> str:
    """The same for each line, with its indent."""
    lines = ((" " * (len(line) - len(line.lstrip(" "))), _clean(line)) for line in text.split(BREAK))
    return BREAK.join(indent + line for indent, line in lines if line).strip()


def read_passages(source: Source, is_used: Callable[[str], bool] | None = None) -> Generator[Passage]:
    """Streams the passages of a file in order.  Documents of more than PASSAGE_WORDS words or CHUNK_CHARS characters are cut, with ids `id#1`,
    `id#2`, ...

    A row that brings an id which is used already is rejected; one without gets a free id, of the file's name and its place in it.
    `is_used` says whether an id is already used (for instance by another file); by default the ids of this file are checked.
    Raises InputError for a file that cannot be read or exceeds a limit, FormatError (a subclass) for a damaged one.
    """
    reader_of(source.path)
    source.check_size()
    own_ids: set[str] = set()
    is_taken = is_used or own_ids.__contains__
    for document in (_isolated if source.limits.is_upload else _documents)(source):
        ids = _free_ids(document, is_taken)
        if not ids:
            source.reject(document.number, f"duplicate id '{document.identity[:50]}'")
            continue
        source.tally.documents += 1
        for passage_id, part in zip(ids, document.parts, strict=True):
            source.tally.passages += 1
            if is_used is None:
                own_ids.add(passage_id)
            yield Passage(passage_id, document.title, part)


class _Document(NamedTuple):
    """A row after cleaning and cutting."""

    number: int
    identity: str
    is_derived: bool  # the identity is not the row's own, but that of its file and place
    is_section: bool
    title: str
    parts: tuple[str, ...]


def _documents(source: Source) -> Iterator[_Document]:
    """The documents of a file.  Those that can't become passages are rejected.

    Raises FormatError if they become more than MAX_PACKED_RATIO times their file, and what the readers raise.
    """
    remaining = source.max_growth()
    for row in _rows(reader_of(source.path), source):
        identity = row.id or source.stem + (f"-{row.number}" if row.place is None else row.place)
        text, title = (_clean(part.translate(_LIGATURES)) for part in (row.text, row.title))
        if reason := _problem(identity, title, text):
            source.reject(row.number, reason)
            continue
        if row.passages and not source.uncut:
            parts = [part for each in row.passages if (part := _clean_lines(each.translate(_LIGATURES)))]
        else:
            parts = [text] if source.uncut else list(chunk_words(text))
        remaining -= sum(len(part) + len(title) + PASSAGE_BYTES for part in parts)
        if remaining < 0:
            raise source.too_much()
        yield _Document(row.number, identity, not row.id, bool(row.passages), title, tuple(parts))


def _isolated(source: Source) -> Iterator[_Document]:
    """The same, read in a separate process.  Raises FormatError, also if it needs too much memory or time."""
    request = {
        "kind": "file",
        "path": str(source.path.resolve()),
        "name": source.name,
        "limits": asdict(source.limits),
        "columns": asdict(source.columns),
        "uncut": source.uncut,
        "seconds": source.limits.max_seconds,
    }
    documents, refusal = 0, None
    try:
        for message in parsed(request):
            source.unit = message["unit"]
            for row in message["rows"]:
                if isinstance(row, dict):
                    source.tally.rejected += 1
                    source.on_reject(Rejected(**row))
                else:
                    documents += 1
                    yield _Document._make((*row[:-1], tuple(row[-1])))
            for name, count in message["tally"].items():
                setattr(source.tally, name, tuple(count) if isinstance(count, list) else count)
            refusal = message["refused"]  # the last but one: reading on leaves the process free for another file
    except StoppedError as e:
        position = f"after document {documents}" if documents else "before its first document"
        raise FormatError(
            f"the reader stopped {position}: the file is damaged or needs too much memory or time; save it again, or split it",
            file=source.name,
        ) from e
    if refusal:
        raise (
            FormatError(refusal["problem"], file=source.name, line=refusal["line"])
            if "problem" in refusal
            else InputError(refusal["message"])
        )


def messages(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The process's replies to `_isolated`."""
    rows: list[dict[str, Any] | _Document] = []  # rejected ones and documents, in their order
    columns = Columns(**{name: tuple(names) for name, names in request["columns"].items()})
    source = Source(
        Path(request["path"]),
        Limits(**request["limits"]),
        lambda row: rows.append(asdict(row)),
        columns=columns,
        name=request["name"],
        uncut=request["uncut"],
    )
    refused: dict[str, Any] | None = None
    try:
        for document in _documents(source):
            rows.append(document)
            if len(rows) >= BATCH_ROWS:
                yield {"rows": rows, "unit": source.unit, "tally": source.tally.of_reader(), "refused": None}
                rows.clear()
    except FormatError as e:
        refused = {"problem": e.problem, "line": e.line}
    except InputError as e:
        refused = {"message": str(e)}
    yield {"rows": rows, "unit": source.unit, "tally": source.tally.of_reader(), "refused": refused}


def _free_ids(document: _Document, is_used: Callable[[str], bool]) -> list[str]:
    """The ids of a document's passages; empty if it brings an id that is already used.  A derived id that is used gets a
    number: `id~2`.

    The first passage of a section has the section's id however many there are, so that links to it hold when it grows.
    """
    identity, parts = document.identity, len(document.parts)
    for name in chain([identity], (f"{identity}~{n}" for n in count(2)) if document.is_derived else ()):
        ids = [name] if parts == 1 else [f"{name}#{i}" for i in range(1, parts + 1)]
        if document.is_section:
            ids[0] = name
        if not any(map(is_used, {name, f"{name}#1", *ids})):
            return ids
    return []


def _problem(identity: str, title: str, text: str) -> str:
    """The reason why a row can't become a passage; empty if it can."""
    if not text:
        return "the text is empty"
    if len(identity) > MAX_ID_CHARS:
        return f"the id has {len(identity)} characters; at most {MAX_ID_CHARS} are allowed"
    if identity != _clean(identity):
        return "the id contains a tab, a control character or repeated white space"
    if len(title) > MAX_TITLE_CHARS:
        return f"the title has {len(title)} characters; at most {MAX_TITLE_CHARS} are allowed (are text and title swapped?)"
    return next((problem for part in (identity, title, text) if (problem := text_problem(part))), "")
