"""How-to questions, whose answers are shown as their section, whole sentences with their code, instead of a few words."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from core.disambiguation.evidence import sentences
from core.types import Answer, Prediction

MIN_UNITS, MAX_UNITS = 2, 4
MIN_PROSE_WORDS = 5  # of a line after the first that is prose, not code
_HOW_TO = re.compile(
    r"^\s*(?:how to\b|how (?:do|does|can|could|should|would|must|may) (?:i|you|we|one|they|people|users?)\b)", re.IGNORECASE
)
_ITEM = re.compile(r"(?:[-*•]|\d+[.)])\s+")
_ITEM_INSIDE = re.compile(r"(?<=[.;:!?])\s+(?=(?:[-*•]|\d+\.)\s+\w)")


class SectionUnit(NamedTuple):
    """A sentence, a list item or a whole listing; offsets of the passage's text."""

    start: int
    end: int
    is_code: bool


def is_how_to(question: str) -> bool:
    """
    >>> [is_how_to(q) for q in ("How do I add a user?", "How to add a user", "How do bees fly?", "How many users?")]
    [True, True, False, False]
    """
    return bool(_HOW_TO.match(question))


def section(prediction: Prediction, answer: Answer) -> list[tuple[str, bool]]:
    """(text, whether it is a listing) of two to four units around the answer's first evidence, in the order of the passage.

    Empty for other questions, and for an answer that no retrieved passage has.
    """
    if not is_how_to(prediction.question.text):
        return []
    for e in answer.evidence:
        if passage := prediction.passage(e.passage_id):
            return [(passage.text[u.start : u.end], u.is_code) for u in around(passage.text, e.start, e.end)]
    return []


def around(text: str, start: int, end: int) -> list[SectionUnit]:
    """The units with the span [start, end), what leads up to them (a line that ends in ":", the sentence before a listing), and what follows."""
    parts = units(text)
    inside = [n for n, u in enumerate(parts) if u.start < end and u.end > start] or [0]
    first, last = inside[0], max(inside[0], min(inside[-1], inside[0] + MAX_UNITS - 1))
    if first and last - first + 1 < MAX_UNITS and (parts[first].is_code or _leads(text, parts[first - 1])):
        first -= 1
    while last + 1 < len(parts) and last - first + 1 < MAX_UNITS:
        if last - first + 1 >= MIN_UNITS and not _leads(text, parts[last]) and not parts[last + 1].is_code:
            break
        last += 1
    while first and last - first + 1 < MIN_UNITS:
        first -= 1
    return parts[first : last + 1]


def units(text: str) -> list[SectionUnit]:
    """A passage's sentences, list items and listings: lines of code keep together, with their breaks and indents (core.retrieval.readers.structure).

    >>> [(text[u.start : u.end], u.is_code) for text in ["Run this:\\n  a\\n  b\\nThen stop the server again."] for u in units(text)]
    [('Run this:', False), ('  a\\n  b', True), ('Then stop the server again.', False)]
    """
    result: list[SectionUnit] = []
    position = 0
    for number, line in enumerate(text.split("\n")):
        begin, position = position, position + len(line) + 1
        if not line.strip():
            continue
        if number and not _is_prose(line):
            if result and result[-1].is_code:
                result[-1] = result[-1]._replace(end=begin + len(line))
            else:
                result.append(SectionUnit(begin, begin + len(line), True))
            continue
        items = [0, *(m.end() for m in _ITEM_INSIDE.finditer(line)), len(line)]
        for a, b in pairwise(items):
            parts = [(0, b - a)] if _ITEM.match(line[a:b]) else sentences(line[a:b])
            result += [
                SectionUnit(begin + a + x, begin + a + len(line[a : a + y].rstrip()), False)
                for x, y in parts
                if line[a + x : a + y].strip()
            ]
    return result


def _is_prose(line: str) -> bool:
    """Whether a line after the first is prose.  Lines of a listing are indented, short or not a sentence."""
    words = line.split()
    return bool(_ITEM.match(line)) or (
        not line[0].isspace() and words[0][0].isupper() and len(words) >= MIN_PROSE_WORDS and line.rstrip()[-1] in ".:!?)"
    )


def _leads(text: str, unit: SectionUnit) -> bool:
    return text[unit.start : unit.end].rstrip().endswith(":")
