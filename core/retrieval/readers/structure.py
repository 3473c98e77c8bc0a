"""Turns sections of a document into passages: their titles, ids and cuts.  This is the rule for every format that has headings.

A passage has at most PASSAGE_WORDS words (and CHUNK_CHARS characters) of one section.  Rows of a table and lines of a listing are kept whole, and comments of a
listing with the line below them; for that, a passage may have up to 150 words.  Lines of a listing keep their breaks and indents.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from core.text import PASSAGE_WORDS, chunk_length, split_words

MAX_LISTING_WORDS = 150  # of a passage with rows or lines
MAX_HEADING_CHARS = 200
MAX_PART_CHARS, MAX_TITLE_PARTS = 90, 4  # of a passage's title: a part of several, and the headings beside the document's title
MAX_SLUG_CHARS = 60
SEPARATOR, BREAK = " > ", "\n"
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|;|--\s|<!--|rem\s)", re.IGNORECASE)


def section_title(document: str, headings: Sequence[str]) -> str:
    """ "Deploy > Docker > Ports": the document's title and its headings.  Long ones are cut, and of many only the last are kept.

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
    """The end of a section's id: its headings in lower case, as web pages name their anchors, with a digest if it is cut.

    >>> slug(["Docker", "Ports & volumes"])
    'docker/ports-volumes'
    """
    parts = [re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", heading).lower()).strip("-_") for heading in headings]
    path = "/".join(filter(None, parts))
    if len(path) > MAX_SLUG_CHARS:
        return f"{path[:MAX_SLUG_CHARS].rstrip('-/')}~{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return path


def passages(blocks: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The passages of a section.  `blocks`: kind (prose, table, listing) and its paragraphs, rows or lines."""
    words: list[str] = []  # fits in a passage; the first one of a line in a listing begins with its break
    before = ""
    for kind, lines in blocks:
        if words and before == "listing" != kind and lines:
            lines = [f"{BREAK}{lines[0]}", *lines[1:]]
        before, max_words = kind, PASSAGE_WORDS if kind == "prose" else MAX_LISTING_WORDS
        for unit in _units(lines) if kind == "listing" else lines:
            more = _words(unit)
            if kind != "prose" and words and not _fits(words + more):
                yield _passage(words)
                words = []
            words += more
            while chunk_length(words, 0, max_words) < len(words):  # a paragraph, or a single line that is too long
                length = chunk_length(words)
                yield _passage(words[:length])
                del words[:length]
        if kind != "prose" and len(words) >= PASSAGE_WORDS:
            yield _passage(words)
            words = []
    if words:
        yield _passage(words)


def _words(text: str) -> list[str]:
    """The words of a text.  Each line but the first starts with BREAK and the line's indent."""
    first, *lines = text.split(BREAK)
    words = split_words(first)
    for line in lines:
        indent = len(line) - len(line.lstrip())
        word, *words_after = split_words(line)
        words += [f"{BREAK}{line[:indent]}{word}", *words_after]
    return words


def _passage(words: Sequence[str]) -> str:
    return " ".join(words).replace(f" {BREAK}", BREAK).strip()


def _fits(words: Sequence[str]) -> bool:
    return chunk_length(words, 0, MAX_LISTING_WORDS) == len(words)


def _units(lines: Sequence[str]) -> Iterator[str]:
    """The indivisible parts of a listing: its paragraphs, or for a long paragraph its lines, each with the comments above
    it."""
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
