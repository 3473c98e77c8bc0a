"""Readers of running text: plain text, Markdown (headings are titles) and PDF (a page is a document)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from core.errors import FormatError, InputError
from core.retrieval.readers.hyphens import Hyphens
from core.retrieval.readers.lines import Row, Source
from core.text import chunk_length, split_words

PASSAGE_WORDS = 100
PDF_WORKER = Path(__file__).with_name("pdf_pages.py")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])")
_FRONT_MATTER = {"---": ("---", "..."), "+++": ("+++",)}  # YAML and TOML: first line, last line
MAX_FRONT_MATTER = 200  # lines
MAX_HEADING_CHARS = 200  # a longer one is text as well
_FIELD = re.compile(r"[\w-]+\s*[:=]|#")
_TITLE = re.compile(r"""title\s*[:=]\s*(?P<quote>["']?)(?P<title>[^\s>|"'].*?)(?P=quote)\s*""", re.IGNORECASE)
_MARKUP = re.compile(r"\*\*|__|`|^[ \t]*(?:[-*+]|>|\d{1,9}\.)[ \t]+")


def read_text(source: Source) -> Iterator[Row]:
    """The whole file as one document, cut while it is read: chunk n has the id `NAME#n`, a single chunk the id `NAME`."""
    words: list[str] = []
    held: Row | None = None  # the latest chunk: the first one's id depends on whether there is a second
    chunks = 0

    def cut() -> Row:
        return Row(start, "", source.title, " ".join(words[:length]), place=f"#{chunks}")

    start, length = 1, 0
    for number, line in source.document_lines():
        if not line.strip():
            source.tally.blank += 1
            continue
        if not words:
            start = number
        words += split_words(line)
        while (length := chunk_length(words, 0, PASSAGE_WORDS)) < len(words):
            if held:
                yield held
            chunks += 1
            held = cut()
            del words[:length]
            start = number
    if words:
        if held:
            yield held
        chunks += 1
        held = cut()
    if held:
        yield held if chunks > 1 else held._replace(place="")


def read_markdown(source: Source) -> Iterator[Row]:
    """Each section as a document, titled `Heading (Document)`; ids `NAME-n`.  Light markup (links, emphasis, lists) is dropped.

    The document is the title in the front matter, the file's first heading of the first level, or its name: many files have a section
    "Installation".  A heading without text is skipped; text before the first heading is titled with the document.
    """
    named, lines = _front_matter(source.document_lines())
    document = title = named or source.title
    start, fenced, sections, before = 1, False, 0, 0
    body: list[str] = []

    def section() -> Row:
        return Row(start, "", title, " ".join(body), place=f"-{sections}")

    for number, line in lines:
        if not line.strip():
            source.tally.blank += 1
            continue
        if _FENCE.match(line):
            fenced = not fenced
            continue
        heading = None if fenced else _HEADING.match(line)
        # under a line of text, not after a blank line (a rule) or a fence
        underlined = not fenced and body and before == number - 1 and re.fullmatch(r" {0,3}(?:=+|-{2,})[ \t]*", line)
        if heading or underlined:
            name = heading.group(2).rstrip().rstrip("#") if heading else body.pop()
            if body:
                sections += 1
                yield section()
            whole = _plain(name).strip()
            name = whole[:MAX_HEADING_CHARS]
            if not named and (len(heading.group(1)) == 1 if heading else line.strip().startswith("=")):
                document = named = name or document
            title, start, body = _sectioned(name, document), number, [whole] if name != whole else []
            continue
        if not fenced and _RULE.fullmatch(line):
            continue
        body.append(line if fenced else _plain(line))
        before = 0 if fenced else number
    if body:
        sections += 1
        yield section()


def _front_matter(lines: Iterator[tuple[int, str]]) -> tuple[str, Iterator[tuple[int, str]]]:
    """The title in a document's front matter, and the lines below it.  What is not closed, or has no field in its first line, is text."""
    head = list(islice(lines, 1))
    ends = _FRONT_MATTER.get(head[0][1].strip()) if head else None
    for number, line in islice(lines, MAX_FRONT_MATTER if ends else 0):
        if ends and line.strip() in ends:
            titles = (m["title"] for _, field in head if (m := _TITLE.fullmatch(field)))
            return _plain(next(titles, "")).strip()[:MAX_HEADING_CHARS], lines
        is_text = not any(field.strip() for _, field in head[1:]) and line.strip() and not _FIELD.match(line)
        head.append((number, line))
        if is_text:
            break
    return "", chain(head, lines)


def _sectioned(heading: str, document: str) -> str:
    """A section's title: its heading, with the document in parentheses where the heading does not name it."""
    if not heading or heading.casefold() == document.casefold():
        return document
    return heading if document.casefold() in heading.casefold() else f"{heading} ({document[:90]})"


def _plain(line: str) -> str:
    """A Markdown line without light markup."""
    return _EMPHASIS.sub(r"\1", _MARKUP.sub("", _LINK.sub(r"\1", line)))


def read_pdf(source: Source) -> Iterator[Row]:
    """Each page as a document with the id `NAME-p3`; words divided at line ends are joined, by what the whole document writes.

    Pages without readable text are rejected by number.  Raises FormatError if the file is not a PDF, damaged or protected by a password.
    """
    hyphens = Hyphens()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as pages:
        for row in _pdf_pages(source):
            hyphens.learn(row.text)
            pages.write(json.dumps(row) + "\n")
        pages.seek(0)
        for line in pages:
            row = Row(*json.loads(line))
            yield row._replace(text=hyphens.joined(row.text))


def _pdf_pages(source: Source) -> Iterator[Row]:
    """The pages as the parser reads them, in its own process with bounded memory and time (pdf_pages.py), so a malicious file cannot crash
    the app."""
    source.unit = "page"
    argv = [sys.executable, str(PDF_WORKER), str(source.path.resolve()), str(min(source.limits.max_pages, 2**31))]
    with tempfile.TemporaryFile() as errors, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors) as worker:
        assert worker.stdout is not None
        finished = False
        try:
            for raw in worker.stdout:
                message = json.loads(raw)
                if "error" in message:
                    raise FormatError(message["error"], file=source.name)
                if "too_many" in message:
                    raise InputError(
                        f"{source.name} has {message['too_many']} pages; at most {source.limits.max_pages} are read. "
                        "Split it, or raise AMBISCOPE_MAX_UPLOAD_PAGES"
                    )
                if "done" in message:
                    finished = True
                    break
                number = int(message["page"])
                source.tally.read += 1
                if "damaged" in message:
                    source.reject(number, message["damaged"])
                elif not message["text"].replace("\ufffd", "").strip():  # or nothing but letters that its fonts do not name
                    source.reject(number, "the page has no text (a scanned image needs OCR first)")
                elif len(message["text"]) > source.limits.max_line_chars:
                    source.reject(number, f"the page has more than {source.limits.max_line_chars} characters")
                else:
                    yield Row(
                        number, "", message["title"][:MAX_HEADING_CHARS] or source.title, message["text"], place=f"-p{number}"
                    )
        finally:
            worker.kill()  # a caller may stop reading at any time
    if finished and not source.tally.read:
        raise FormatError("the PDF has no pages; print it to a new PDF", file=source.name)
    if not finished:
        where = f"after page {source.tally.read}" if source.tally.read else "before its first page"
        raise FormatError(
            f"the PDF parser stopped {where}: the file is damaged or needs too much memory or time; print it to a new PDF",
            file=source.name,
        )
