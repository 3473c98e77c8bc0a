"""Abbreviations and what they stand for: "N64" is Nintendo 64, "GoT" Game of Thrones, "FDR" Franklin D. Roosevelt.

The short form of a name is the initials of its words, with or without small words, counting capitals inside a word ("PS2"); numbers stay whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

LONGEST_NAME = 6  # words
_SMALL = "of|the|and|for|in|de|la|on|to"
_NAME = re.compile(rf"\b(?:[A-Z]\.|[A-Z][\w’'-]{{0,40}})(?: (?:(?:{_SMALL}) ){{0,2}}(?:[A-Z]\.|[A-Z][\w’'-]*|\d+\b))+")
# two capitals, or letters followed by a number; not Roman numerals
_SHORT = re.compile(r"\b(?![IVXLC]+\b)(?:[A-Z][a-z]{0,2}[A-Z][A-Za-z]{0,5}|(?:[A-Z]\.){2,5}|[A-Za-z]{1,4}\d{1,4})(?![\w’'-])")
_LOWER_CASE = re.compile(r"\b[a-z]{3,6}\b")


def key_of(short: str) -> str:
    """The key of a short name: its letters and digits in lower case.

    >>> key_of("F.D.R."), key_of("N64")
    ('fdr', 'n64')
    """
    return "".join(c for c in short.casefold() if c.isalnum())


def short_forms(name: str) -> set[str]:
    """Keys of the possible short forms of a name; none for a single word.

    >>> sorted(short_forms("Game of Thrones")), sorted(short_forms("PlayStation 2")), short_forms("Basalt")
    (['got', 'gt'], ['p2', 'ps2'], set())
    """
    parts = re.findall(r"[^\W_]+", name)
    if not 1 < len(parts) <= LONGEST_NAME:
        return set()

    def first(part: str, inside: bool) -> str:
        return part if part.isdigit() else "".join(c for i, c in enumerate(part) if not i or (inside and c.isupper()))

    large = [p for p in parts if p.casefold() not in _SMALL.split("|")]
    forms = {"".join(first(p, inside) for p in words).casefold() for words in (parts, large) for inside in (False, True)}
    return {form for form in forms - {p.casefold() for p in parts} if 1 < len(form) <= 8}


def names_in(text: str) -> Iterator[str]:
    """Capitalised names of several words; also without the first word, which may only be capitalised because it begins a sentence."""
    for match in _NAME.finditer(text):
        parts = re.sub(r"['’]s?$", "", match.group().rstrip(".")).split()
        for words in (parts, parts[1:]):
            if (
                1 < len(words) <= LONGEST_NAME
                and words[0][0].isupper()
                and words[0] not in ("The", "In", "On", "At", "A", "An", "After", "Its")
            ):
                yield " ".join(words)


def written_in(text: str) -> set[str]:
    """The keys of the short names in a text.

    >>> sorted(written_in("The National Ice Survey, usually called NIS, is no NATO body; nor was Henry VIII."))
    ['nato', 'nis']
    """
    return {key_of(match.group()) for match in _SHORT.finditer(text)}


def short_names_in(question: str, is_word: Callable[[str], bool]) -> list[re.Match[str]]:
    """The question's short names: by their capitals and digits, and lower-case words that the corpus does not have (`is_word` is false)."""
    unknown = [m for m in _LOWER_CASE.finditer(question) if not is_word(m.group())]
    return sorted([*_SHORT.finditer(question), *unknown], key=lambda m: m.start())


def spelled_out(question: str, texts: Sequence[str]) -> str:
    """The question with each short form that occurs in none of the texts replaced by the name that the texts have.

    >>> spelled_out("When did the N64 come out?", ["Nintendo 64 (European launch). It came in 1997."])
    'When did the Nintendo 64 come out?'
    """
    for match in reversed(list(_SHORT.finditer(question))):
        key = key_of(match.group())
        if len(key) < 3 or any(match.group() in text for text in texts):
            continue
        names = [n for text in texts for n in names_in(text) if key in short_forms(n)]
        if names:
            name = max(dict.fromkeys(names), key=names.count)
            question = f"{question[: match.start()]}{name}{question[match.end() :]}"
    return question
