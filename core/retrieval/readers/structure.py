"""Sections of a document to passages: their titles, their ids, and where they are cut.  The rule for every format that has headings.

A passage has at most 100 words (and 1,500 characters) of one section.  Rows of a table and lines of a listing are kept whole, and comments of a
listing with the line below them; for that, a passage may have up to 150 words.  Lines of a listing keep their breaks and indents.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from core.text import chunk_length, split_words

PASSAGE_WORDS = 100  # DPR, section 4.1
MAX_LISTING_WORDS = 150  # of a passage with rows or lines
MAX_HEADING_CHARS = 200
MAX_PART_CHARS, MAX_TITLE_PARTS = 90, 4  # of a passage's title: a part of several, and the headings beside the document's title
MAX_SLUG_CHARS = 60
SEPARATOR, BREAK = " > ", "\n"
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|;|--\s|<!--|rem\s)", re.IGNORECASE)


def section_title(document: str, headings: Sequence[str]) -> str:
    """ "Deploy > Docker > Ports": the document's title and the headings, long ones cut, and only the last ones of many.

    >>> section_title("Deploy", ["Docker", "Ports"])
    'Deploy > Docker > Ports'
    """
    if not headings:
        return document[:MAX_HEADING_CHARS]
    inner = [heading[:MAX_PART_CHARS] for heading in headings]
    if len(inner) > MAX_TITLE_PARTS:
        inner = ["...", *inner[-MAX_TITLE_PARTS + 1 :]]
    while len(inner) > 1 and len(SEPARATOR.join(inner)) > MAX_HEADING_CHARS:
        inner = ["...", *inner[2 if inner[0] == "..." else 1 :]]
    return SEPARATOR.join([document[:MAX_PART_CHARS], *inner])


def slug(headings: Sequence[str]) -> str:
    """The end of a section's id: its headings in lower case, as web pages name their places; with a digest where it is cut.

    >>> slug(["Docker", "Ports & volumes"])
    'docker/ports-volumes'
    """
    parts = [re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", heading).lower()).strip("-_") for heading in headings]
    whole = "/".join(filter(None, parts))
    if len(whole) > MAX_SLUG_CHARS:
        return f"{whole[:MAX_SLUG_CHARS].rstrip('-/')}~{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return whole


def passages(blocks: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The passages of a section.  `blocks`: kind (prose, table, listing) and its paragraphs, rows or lines."""
    words: list[str] = []  # fits in a passage; the first one of a line in a listing begins with its break
    before = ""
    for kind, lines in blocks:
        if words and before == "listing" != kind and lines:
            lines = [f"{BREAK}{lines[0]}", *lines[1:]]
        before = kind
        if kind == "prose":
            for line in lines:
                words += _words(line)
                while (length := chunk_length(words, 0, PASSAGE_WORDS)) < len(words):
                    yield _joined(words[:length])
                    del words[:length]
            continue
        for unit in _units(lines) if kind == "listing" else lines:
            more = _words(unit)
            if words and not _fits(words + more):
                yield _joined(words)
                words = []
            words += more
            while not _fits(words):  # a single line that is too long
                length = chunk_length(words, 0, PASSAGE_WORDS)
                yield _joined(words[:length])
                del words[:length]
        if len(words) >= PASSAGE_WORDS:
            yield _joined(words)
            words = []
    if words:
        yield _joined(words)


def _words(text: str) -> list[str]:
    """The words of a text; those that begin a further line of it begin with BREAK and its indent."""
    first, *further = text.split(BREAK)
    words = split_words(first)
    for line in further:
        indent = len(line) - len(line.lstrip())
        begin, *rest = split_words(line)
        words += [f"{BREAK}{line[:indent]}{begin}", *rest]
    return words


def _joined(words: Sequence[str]) -> str:
    return " ".join(words).replace(f" {BREAK}", BREAK).strip()


def _fits(words: Sequence[str]) -> bool:
    return chunk_length(words, 0, MAX_LISTING_WORDS) == len(words)


def _units(lines: Sequence[str]) -> Iterator[str]:
    """What is not parted in a listing: its paragraphs, and of a long one its lines, each with the comments above it."""
    paragraph: list[str] = []
    for line in (*lines, ""):
        if line.strip():
            paragraph.append(f"{BREAK}{line.expandtabs(4)}")
            continue
        if _fits(_words("".join(paragraph))):
            yield "".join(paragraph)
        else:
            yield from _commented(paragraph)
        paragraph = []


def _commented(lines: Sequence[str]) -> Iterator[str]:
    above: list[str] = []
    for line in lines:
        above.append(line)
        if not _COMMENT.match(line):
            yield "".join(above)
            above = []
    if above:
        yield "".join(above)
