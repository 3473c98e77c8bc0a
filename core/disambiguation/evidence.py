"""The evidence of an answer: its passage's title, and the sentence that contains the answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from core.types import Passage

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")

_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bSt\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bMrs\.)(?<!\bNo\.)\s+(?=[A-Z\"'(])")
_QUALIFIED = re.compile(r"^(?P<base>.*\S)\s*\((?P<qualifier>[^()]+)\)$")


class AnswerPlace(NamedTuple):
    """The place of an answer: a passage and a character offset in its text."""

    passage: Passage
    start: int

    @property
    def sentence(self) -> str:
        """The sentence of the passage that contains the answer."""
        begin, end = sentence_bounds(self.passage.text, self.start)
        return self.passage.text[begin:end]


def sentences(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each sentence; initials ("William A. Wellman") do not end one."""
    gaps = [(gap.start(), gap.end()) for gap in _SENTENCE.finditer(text)]
    return list(zip([0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(text)]))


def sentence_bounds(text: str, start: int) -> tuple[int, int]:
    """The (start, end) of the sentence that contains offset `start`."""
    return next(((a, b) for a, b in sentences(text) if a <= start < b), (0, len(text)))


def split_title(title: str) -> tuple[str, str]:
    """("West Side Story", "1961 film") from "West Side Story (1961 film)"; without a qualifier, the second is empty."""
    match = _QUALIFIED.match(title)
    return (match["base"], match["qualifier"]) if match else (title, "")
