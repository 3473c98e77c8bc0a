"""What the templates share: sentences, patterns of names and times, and when a phrase can be appended to a question."""

from __future__ import annotations

import re

from core.types import Passage

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
# what stands before a name makes it another name: "the first World Cup"
NOT_BEFORE_A_NAME = frozenset("first second third last latest next new old original current best only very most".split())
# a double question: "Who found penicillin and when?", "When and where did Napoleon die?"
PART = re.compile(
    r"^(?P<first>.+?),?\s+and\s+(?P<second>(?:when|where|who|what|which|how|why|(?:at|in|on) (?:what|which))\b.*)$",
    re.IGNORECASE,
)
BOTH = re.compile(r"^(?P<a>when|where|who|how|why)\s+and\s+(?P<b>when|where|who|how|why)\s+(?P<rest>.+)$", re.IGNORECASE)

_AT_END = re.compile(r"\b(in|on|at|to|for|from|with|by|of|about|and)\?*$", re.IGNORECASE)


_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bSt\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bMrs\.)(?<!\bNo\.)\s+(?=[A-Z\"'(])")


def sentences(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each sentence; initials ("William A. Wellman") do not end one."""
    gaps = [(gap.start(), gap.end()) for gap in _SENTENCE.finditer(text)]
    return list(zip([0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(text)]))


def sentence_bounds(text: str, start: int) -> tuple[int, int]:
    """The (start, end) of the sentence that contains offset `start`."""
    return next(((a, b) for a, b in sentences(text) if a <= start < b), (0, len(text)))


def evidence_sentence(passage: Passage, start: int) -> str:
    """The sentence of the passage that contains offset `start`."""
    begin, end = sentence_bounds(passage.text, start)
    return passage.text[begin:end]


def can_append(question: str) -> bool:
    """True if a phrase can be appended: the question does not end in a preposition and asks one thing."""
    body = question.rstrip().rstrip("?").rstrip()
    return not _AT_END.search(body) and not PART.match(body) and not BOTH.match(body) and "," not in body[-12:]


def append(question: str, phrase: str) -> str:
    """The question with the phrase before its question mark."""
    return f"{question.rstrip().rstrip('?').rstrip()} {phrase}?"
