"""Files -> passages, one streaming interface for every format.

A reader turns a `Source` into rows; the steps that all formats share (cleaning, ids, duplicates, chunks of 100 words or 1,500 characters) are
here.  A new format is one function and one entry in `READERS`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import chain, count
from pathlib import Path

from core.errors import InputError
from core.retrieval.readers.columns import read_arrow, read_parquet
from core.retrieval.readers.documents import read_docx, read_markup, read_pdf, read_text
from core.retrieval.readers.lines import DEFAULT_COLUMNS, Columns, Limits, Rejected, Row, Source, Tally
from core.retrieval.readers.structure import BREAK, PASSAGE_WORDS
from core.retrieval.readers.tables import MAX_ID_CHARS, read_jsonl, read_tsv
from core.text import chunk_words, text_problem
from core.types import Passage

MAX_TITLE_CHARS = 300
Reader = Callable[[Source], Iterator[Row]]

READERS: dict[str, Reader] = {
    ".tsv": read_tsv,
    ".tsv.gz": read_tsv,
    ".jsonl": read_jsonl,
    ".jsonl.gz": read_jsonl,
    ".txt": read_text,
    ".md": partial(read_markup, kind="md"),
    ".markdown": partial(read_markup, kind="md"),
    ".mdx": partial(read_markup, kind="mdx"),
    ".rst": partial(read_markup, kind="rst"),
    ".html": partial(read_markup, kind="html"),
    ".htm": partial(read_markup, kind="html"),
    ".docx": read_docx,
    ".pdf": read_pdf,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
}
ZIP = ".zip"  # of a folder (zips.py)
# what the Corpora page accepts; the size of the others is not known before they are unpacked: they are read from the command line only
IN_ZIP = tuple(suffix for suffix in READERS if suffix not in (".parquet", ".arrow"))
UPLOADED = (*IN_ZIP, ZIP)
# control characters would break the row file, a log or a terminal; white space is collapsed anyway
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
# ligatures, which PDFs hold as one character: "ﬁ" is "fi"
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB50)}
_DIVIDED = re.compile(
    "(?<=\\w)[\u2010\u00ad]\\s+(?=[^\\W\\d_])|\u00ad"
)  # U+2010 and the soft hyphen, used for hyphenation; not a plain "-"


def suffix_of(name: str, suffixes: Iterable[str]) -> str:
    """The longest of these suffixes that a file's name has, in any case; empty if it has none."""
    return max((suffix for suffix in suffixes if name.lower().endswith(suffix)), key=len, default="")


def reader_for(path: Path) -> Reader:
    """The reader of a file's suffix.  Raises InputError for one that is not registered."""
    suffix = suffix_of(path.name, READERS)
    if not suffix:
        raise InputError(f"{path.name}: no reader for this kind of file; use one of {', '.join(READERS)}")
    return READERS[suffix]


def _clean(text: str) -> str:
    """Removes control characters, joins words hyphenated at line ends, and collapses white space."""
    return " ".join(_DIVIDED.sub("", text.translate(_CONTROLS)).split())


def _clean_lines(text: str) -> str:
    """The same of each line, with its indent."""
    lines = ((" " * (len(line) - len(line.lstrip(" "))), _clean(line)) for line in text.split(BREAK))
    return BREAK.join(indent + line for indent, line in lines if line).strip()


def read_passages(
    path: Path,
    limits: Limits,
    on_reject: Callable[[Rejected], None],
    *,
    name: str = "",
    is_used: Callable[[str], bool] | None = None,
    tally: Tally | None = None,
    columns: Columns = DEFAULT_COLUMNS,
    uncut: bool = False,
) -> Generator[Passage]:
    """The passages of a file, in its order, streamed; documents of more than 100 words or 1,500 characters are cut, with ids `id#1`, `id#2`, ...

    A row that brings an id which is used already is rejected; one without gets a free id, of the file's name and its place in it.
    `on_reject` receives every rejected row.  `name`: the file's in the corpus, by default its own.  `is_used` says whether an id is already used
    (for instance by another file); by default the ids of this file are checked.  `tally` is filled while passages are read.  `columns`: names
    of the fields.  `uncut`: a row is a passage, however long it is.
    Raises InputError for a file that cannot be read or exceeds a limit, FormatError (a subclass) for a damaged one.
    """
    reader = reader_for(path)
    source = Source(path, limits, on_reject, tally or Tally(), columns=columns, name=name)
    source.check_size()
    own_ids: set[str] = set()
    is_taken = is_used or own_ids.__contains__
    for row in reader(source):
        identity = row.id or source.stem + (f"-{row.number}" if row.place is None else row.place)
        text, title = (_clean(part.translate(_LIGATURES)) for part in (row.text, row.title))
        reason = _problem(identity, title, text)
        if row.passages and not uncut:
            parts = [part for each in row.passages if (part := _clean_lines(each.translate(_LIGATURES)))]
        else:
            parts = [text] if uncut else list(chunk_words(text, PASSAGE_WORDS))
        ids = [] if reason else _free_ids(identity, len(parts), is_taken, is_derived=not row.id, is_section=bool(row.passages))
        if not ids:
            source.reject(row.number, reason or f"duplicate id '{identity[:50]}'")
            continue
        source.tally.documents += 1
        for passage_id, part in zip(ids, parts, strict=True):
            source.tally.passages += 1
            if is_used is None:
                own_ids.add(passage_id)
            yield Passage(passage_id, title, part)


def _free_ids(identity: str, parts: int, is_used: Callable[[str], bool], *, is_derived: bool, is_section: bool) -> list[str]:
    """The ids of a row's passages; none if the row brings an id that is used.  A derived id that is used gets a number: `id~2`.

    The first passage of a section has the section's id however many there are, so that links to it hold when it grows.
    """
    for name in chain([identity], (f"{identity}~{n}" for n in count(2)) if is_derived else ()):
        ids = [name] if parts == 1 else [f"{name}#{i}" for i in range(1, parts + 1)]
        if is_section:
            ids[0] = name
        if not any(map(is_used, {name, f"{name}#1", *ids})):
            return ids
    return []


def _problem(identity: str, title: str, text: str) -> str:
    """Why a row cannot be a passage; empty if it can."""
    if not text:
        return "the text is empty"
    if len(identity) > MAX_ID_CHARS:
        return f"the id has {len(identity)} characters; at most {MAX_ID_CHARS} are allowed"
    if identity != _clean(identity):
        return "the id contains a tab, a control character or repeated white space"
    if len(title) > MAX_TITLE_CHARS:
        return f"the title has {len(title)} characters; at most {MAX_TITLE_CHARS} are allowed (are text and title swapped?)"
    return next((problem for part in (identity, title, text) if (problem := text_problem(part))), "")
