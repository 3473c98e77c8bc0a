"""The encoding of a document as a whole: UTF-8, or the one that charset-normalizer detects among those of the web.

Source: https://charset-normalizer.readthedocs.io; the candidates are https://encoding.spec.whatwg.org without the rare ones.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from core.errors import FormatError

UTF8, WESTERN = "utf-8", "cp1252"
CANDIDATES = (
    f"utf_16 utf_16_le utf_16_be utf_32 {WESTERN} cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 cp1257 "
    "iso8859_2 koi8_r koi8_u cp874 cp932 euc_jp gb18030 big5 cp949"
).split()
BLOCK = 1024 * 1024  # bytes read at a time
SAMPLE = 256 * 1024  # bytes that an encoding is detected from
MAX_UTF8_SHARE = 0.1  # of the words beyond ASCII in a document of another encoding: some are UTF-8 by chance
# a Western document has few letters beyond ASCII to tell it by: it is preferred where its text is nearly as plausible
WESTERN_CHAOS = 0.05
SAVE = "save the file as UTF-8"


def encoding_of(path: Path, name: str) -> str:
    """ "utf-8", or the codec of a document that is not UTF-8.

    Raises FormatError for a document that mixes encodings, one whose encoding is not clear, and a binary file; OSError.
    """
    if _is_utf8(path):
        return UTF8
    import charset_normalizer

    sample = _sample(path, name)
    matches = charset_normalizer.from_bytes(sample, cp_isolation=CANDIDATES)
    best = matches.best()
    if best is None:
        raise FormatError(f"neither UTF-8 nor text of an encoding that can be detected; {SAVE}", file=name)
    western = any(WESTERN in m.could_be_from_charset and m.chaos <= best.chaos + WESTERN_CHAOS for m in matches)
    return WESTERN if western else best.encoding


def _is_utf8(path: Path) -> bool:
    """True if the file is UTF-8 without NUL, of which UTF-16 is full."""
    decoder = codecs.getincrementaldecoder(UTF8)()
    with path.open("rb") as file:
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
                if b"\0" in block:
                    return False
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _sample(path: Path, name: str) -> bytes:
    """The lines with bytes beyond ASCII, which tell one encoding from another; the start of a file with NUL.

    Raises FormatError where a part of the words is UTF-8 and another is not: each single encoding would misread some.
    """
    lines, first, valid, words = bytearray(), 0, 0, 0
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(BLOCK), b""), 1):
            if b"\0" in line:
                file.seek(0)
                return file.read(SAMPLE)
            if line.isascii():
                continue
            for word in line.split():
                if not word.isascii():
                    is_valid = word == word.decode(UTF8, "ignore").encode()
                    first = first or (0 if is_valid else number)
                    valid, words = valid + is_valid, words + 1
            if len(lines) < SAMPLE:
                lines += line
    if valid > MAX_UTF8_SHARE * words:
        raise FormatError(
            f"not UTF-8 in this line, but in {valid} words elsewhere: the file mixes encodings; {SAVE}", file=name, line=first
        )
    return bytes(lines)
