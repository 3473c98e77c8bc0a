"""Finds the encoding of a whole document the way the HTML standard does: byte order mark, UTF-8, declaration, or detection.

A document that is UTF-8 throughout is read so, whatever it declares.  Sources: https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding,
https://encoding.spec.whatwg.org (names: webencodings), https://charset-normalizer.readthedocs.io (detection among the encodings of the web
without the rare ones).
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import webencodings

from core.errors import FormatError

UTF8, WESTERN = "utf-8", "cp1252"
CANDIDATE_ENCODINGS = (
    f"utf_16 utf_16_le utf_16_be utf_32 {WESTERN} cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 "
    "iso8859_2 koi8_r koi8_u cp874 cp932 euc_jp gb18030 big5 cp949"
).split()
# utf_16 takes the mark off
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: UTF8, codecs.BOM_UTF16_LE: "utf_16", codecs.BOM_UTF16_BE: "utf_16"}
# what the standard means by a name, where Python's codec of this name has fewer characters
BROADER_ENCODINGS = {"shift_jis": "cp932", "gbk": "gb18030", "euc-kr": "cp949", "big5": "big5hkscs", "x-user-defined": WESTERN}
SEVEN_BITS = ("iso2022_jp",)  # all of it is ASCII, and UTF-8 as well
DECLARED_WITHIN = 4096  # bytes; the standard looks at the first 1,024 and again when it comes to a later declaration
BLOCK_BYTES = 1024 * 1024  # bytes read at a time
SAMPLE_BYTES = 256 * 1024  # bytes that an encoding is detected from
MAX_UTF8_SHARE = 0.1  # of the words beyond ASCII in a document of another encoding: some are UTF-8 by chance
# a Western document has few letters beyond ASCII to tell it by: it is preferred where its text is nearly as plausible
WESTERN_CHAOS = 0.05
SAVE_ADVICE = "save the file as UTF-8"
_IN_CONTENT = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]{1,40})", re.IGNORECASE)
_IN_XML = re.compile(r"\s(?:encoding)\s*=\s*[\"']([\w.:-]{1,40})[\"']")


def encoding_of(path: Path, name: str, *, is_html: bool = False) -> str:
    """ "utf-8", or the codec of a document that is not UTF-8.

    Raises FormatError for a document that mixes encodings, one whose encoding is not clear or not known, and a binary file; OSError.
    """
    with path.open("rb") as file:
        head = file.read(DECLARED_WITHIN)
    for mark, codec in BYTE_ORDER_MARKS.items():
        if head.startswith(mark) and not head.startswith(codecs.BOM_UTF32_LE):
            return codec
    label = _declared(head.decode("latin-1")) if is_html else ""
    declared = _codec(label)
    if _is_utf8(path) and declared not in SEVEN_BITS:
        return UTF8
    sample = _sample(path, name)
    if label and not declared:
        raise FormatError(f"it declares the encoding '{label}', which no browser knows; {SAVE_ADVICE}", file=name)
    return declared if declared not in ("", UTF8) else _detected(sample, name)


def _codec(label: str) -> str:
    """Python's codec for a web encoding's name; empty for an unknown name."""
    encoding = webencodings.lookup(label) if label else None
    if encoding is None:
        return ""
    if encoding.name.startswith("utf-16"):  # not by a declaration that is read as ASCII
        return UTF8
    return BROADER_ENCODINGS.get(encoding.name, encoding.codec_info.name)


class _Declaration(HTMLParser):
    """The first encoding that a page's XML declaration or meta elements name."""

    label = ""

    def handle_pi(self, data: str) -> None:
        if data.startswith("xml") and (match := _IN_XML.search(data)):
            self.label = self.label or match[1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in reversed(attrs)}
        if tag != "meta" or self.label:
            return
        match = (
            _IN_CONTENT.search(values.get("content", "")) if values.get("http-equiv", "").lower() == "content-type" else None
        )
        self.label = values.get("charset", "").strip() or (match[1] if match else "")


def _declared(head: str) -> str:
    """The encoding declared at the start of a page; empty if there is none."""
    declaration = _Declaration()
    with suppress(Exception):  # a page may be anything, and the parser raises on some of it
        declaration.feed(head)
    return declaration.label[:40]


def _detected(sample: bytes, name: str) -> str:
    import charset_normalizer

    matches = charset_normalizer.from_bytes(sample, cp_isolation=CANDIDATE_ENCODINGS)
    best = matches.best()
    if best is None:
        raise FormatError(f"neither UTF-8 nor text of an encoding that can be detected; {SAVE_ADVICE}", file=name)
    western = any(WESTERN in m.could_be_from_charset and m.chaos <= best.chaos + WESTERN_CHAOS for m in matches)
    return WESTERN if western else best.encoding


def _is_utf8(path: Path) -> bool:
    """Whether the file is UTF-8 without NUL, which UTF-16 is full of."""
    decoder = codecs.getincrementaldecoder(UTF8)()
    with path.open("rb") as file:
        try:
            while block := file.read(BLOCK_BYTES):
                decoder.decode(block)
                if b"\0" in block:
                    return False
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _sample(path: Path, name: str) -> bytes:
    """The lines with bytes beyond ASCII, which distinguish encodings; for a file with NUL, its start.

    Raises FormatError if a part of the words is UTF-8 and another is not: each single encoding would misread some.
    """
    lines, first, valid, words = bytearray(), 0, 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(BLOCK_BYTES), b""), 1):
            if b"\0" in line:
                file.seek(0)
                return file.read(SAMPLE_BYTES)
            if line.isascii():
                continue
            for word in line.split():
                if not word.isascii():
                    is_valid = word == word.decode(UTF8, "ignore").encode()
                    first = first or (0 if is_valid else number)
                    valid, words = valid + is_valid, words + 1
            if len(lines) < SAMPLE_BYTES:
                lines += line
    if valid > MAX_UTF8_SHARE * words:
        raise FormatError(
            f"not UTF-8 in this line, but in {valid} words elsewhere: the file mixes encodings; {SAVE_ADVICE}",
            file=name,
            line=first,
        )
    return bytes(lines)
