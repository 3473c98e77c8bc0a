"""Readers of documents: plain text, PDF (one document a page), and formats with headings: Markdown, reStructuredText, HTML,
Word."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from core.errors import FormatError, InputError
from core.retrieval.readers.hyphens import Hyphens
from core.retrieval.readers.lines import MAX_DOUBTFUL, MB, DocumentRow, Source
from core.retrieval.readers.sandbox import StoppedError, parsed
from core.retrieval.readers.structure import MAX_HEADING_CHARS, passages, section_title, slug
from core.text import chunk_length, split_words

MAX_DOCUMENT_BYTES = 20 * MB  # of a document that is parsed whole
_FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}  # YAML and TOML: first line, last line
MAX_FRONT_MATTER = 200  # lines
MAX_FRONT_MATTER_CHARS = 20_000  # PyYAML reads 100 characters a millisecond
_FIELD = re.compile(r"[\w-]+\s*[:=]|#")


def read_text(source: Source) -> Iterator[DocumentRow]:
    """The whole file as one document, cut while it is read: chunk n has the id `NAME#n`, a single chunk the id `NAME`."""
    chunks = (DocumentRow(start, "", source.title, text, place=f"#{n}") for n, (start, text) in enumerate(_chunks(source), 1))
    head = list(islice(chunks, 2))
    if len(head) == 1:
        head = [head[0]._replace(place="")]
    yield from chain(head, chunks)


def _chunks(source: Source) -> Iterator[tuple[int, str]]:
    """The first line and the text of each chunk."""
    words: list[str] = []
    start = 1
    for number, line in source.document_lines():
        if not line.strip():
            source.tally.blank += 1
            continue
        if not words:
            start = number
        words += split_words(line)
        while (length := chunk_length(words)) < len(words):
            yield start, " ".join(words[:length])
            del words[:length]
            start = number
    if words:
        yield start, " ".join(words)


def read_markup(source: Source, kind: str) -> Iterator[DocumentRow]:
    """One document for each section of a text, by `kind`:

    - md: Markdown.  The title in the front matter is the document's; the front matter itself is not part of the text.
    - mdx: Markdown with components.  Their titles and contents are read, modules and comments are not.
    - rst: reStructuredText, with Sphinx's directives and roles.
    - html: a page, without navigation, headers, footers, scripts and styles.
    """
    title, lines = "", source.document_lines()
    if kind in ("md", "mdx"):
        title, lines = _front_matter(lines)
    return _sections(source, {"kind": kind, "text": _document_text(source, lines), "title": title})


def read_docx(source: Source) -> Iterator[DocumentRow]:
    """One document for each section of a Word document, without its pictures and macros."""
    _check_document_size(source)
    source.unit = "section"
    return _sections(source, {"kind": "docx", "path": str(source.path.resolve())})


def _check_document_size(source: Source) -> None:
    if (size := source.path.stat().st_size) > MAX_DOCUMENT_BYTES:
        raise InputError(
            f"{source.name} has {size / MB:.1f} MB; a document with headings may have {MAX_DOCUMENT_BYTES // MB} MB: split it"
        )


def _document_text(source: Source, lines: Iterable[tuple[int, str]]) -> str:
    """The text of a document, of bounded size."""
    _check_document_size(source)
    texts = [line for _, line in lines]
    source.tally.blank += sum(not line.strip() for line in texts)
    return "\n".join(texts)


def _sections(source: Source, request: dict[str, Any]) -> Iterator[DocumentRow]:
    """The sections of a document, parsed in a separate process, with ids `NAME#heading/subheading`.

    Raises FormatError if it is damaged, protected by a password, or takes too much memory or time.
    """
    messages = _parsed(source, request)
    document = next(messages)["title"] or source.title
    for number, message in enumerate(messages, 1):
        if source.unit == "section":
            source.tally.read += 1
        parts = tuple(passages(message["blocks"]))
        place = f"#{name}" if (name := slug(message["headings"])) else ""
        yield DocumentRow(
            number, "", section_title(document, message["headings"]), " ".join(parts), place=place, passages=parts
        )


def _parsed(source: Source, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parser's messages.  Raises FormatError if it refuses or stops."""
    has_started, refusal = False, ""
    try:
        for message in parsed(request):
            if "error" in message:
                refusal = message["error"]  # the last but one: reading on leaves the process free for another document
            else:
                has_started = True
                yield message
    except StoppedError as e:
        position = f"after {source.unit} {source.tally.read}" if has_started else "before its first words"
        raise FormatError(
            f"the parser stopped {position}: the file is damaged or needs too much memory or time; save it again, or split it",
            file=source.name,
        ) from e
    if refusal:
        raise FormatError(refusal, file=source.name)


def _front_matter(lines: Iterator[tuple[int, str]]) -> tuple[str, Iterator[tuple[int, str]]]:
    """The title in a document's front matter, and the lines below it.  An unclosed block, or one without fields, is text."""
    head = list(islice(lines, 1))
    mark = head[0][1].strip() if head else ""
    ends = _FRONT_MATTER.get(mark, ())
    for number, line in islice(lines, MAX_FRONT_MATTER if ends else 0):
        if line.rstrip() in ends:
            fields = _fields("\n".join(text for _, text in head[1:]), is_toml=mark == "+++")
            if fields is None:
                lines = chain([(number, line)], lines)
                break
            title = next((value for name, value in fields.items() if str(name).lower() == "title"), "")
            title = (
                "" if isinstance(title, bool | list | dict | None) else re.sub(r"[*`]", "", str(title)[:MAX_FRONT_MATTER_CHARS])
            )
            return " ".join(title.split())[:MAX_HEADING_CHARS], lines
        head.append((number, line))
    return "", chain(head, lines)


def _fields(text: str, *, is_toml: bool) -> dict[Any, Any] | None:
    """The fields of front matter, or just the title if it is long or damaged; None if it isn't front matter but text between
    rules."""
    import tomllib

    import yaml

    try:
        if len(text) > MAX_FRONT_MATTER_CHARS:
            raise ValueError("too long")
        fields = tomllib.loads(text) if is_toml else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        if not _FIELD.match(text.lstrip()):
            return None
        lines = (line.partition("=" if is_toml else ":") for line in text.split("\n"))
        return {name.strip(): value.strip().strip("\"'") for name, _, value in lines if name.strip().lower() == "title"}
    return {} if fields is None else fields if isinstance(fields, dict) else None


def read_pdf(source: Source) -> Iterator[DocumentRow]:
    """Each page as a document with the id `NAME-p3`.  Words divided at line ends are rejoined, guided by the spellings in the
    whole document.

    Pages without readable text are rejected by number.  Raises FormatError if the file is not a PDF, damaged or protected by a password.
    """
    hyphens, remaining = Hyphens(), source.max_growth()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as pages:
        for row in _pdf_pages(source):
            remaining -= len(row.text)
            if remaining < 0:
                raise source.too_much()
            hyphens.learn(row.text)
            pages.write(json.dumps(row) + "\n")
        pages.seek(0)
        for line in pages:
            row = DocumentRow(*json.loads(line))
            yield row._replace(text=hyphens.rejoin(row.text))


def _pdf_pages(source: Source) -> Iterator[DocumentRow]:
    """The pages as the parser reads them."""
    source.unit = "page"
    limit = min(source.limits.max_pages, 2**31)
    for message in _parsed(source, {"kind": "pdf", "path": str(source.path.resolve()), "max_pages": limit}):
        if "too_many" in message:
            raise InputError(
                f"{source.name} has {message['too_many']} pages; at most {source.limits.max_pages} are read. "
                "Split it, or raise AMBISCOPE_MAX_UPLOAD_PAGES"
            )
        number = int(message["page"])
        source.tally.read += 1
        if "damaged" in message:
            source.reject(number, message["damaged"])
        elif not message["text"].replace("\ufffd", "").strip():  # or nothing but letters that its fonts do not name
            source.reject(number, "the page has no text (a scanned image needs OCR first)")
        elif len(message["text"]) > source.limits.max_line_chars:
            source.reject(number, f"the page has more than {source.limits.max_line_chars} characters")
        else:
            title = message["title"][:MAX_HEADING_CHARS] or source.title
            if message["doubtful"] and len(source.tally.doubtful) < MAX_DOUBTFUL:
                source.tally.doubtful = (*source.tally.doubtful, number)
            yield DocumentRow(number, "", title, message["text"], place=f"-p{number}")
    if not source.tally.read:
        raise FormatError("the PDF has no pages; print it to a new PDF", file=source.name)
