"""What the evidence of an answer says: its passage's title, the sentence that contains the answer, and the clause in it."""

from __future__ import annotations

import re
from typing import NamedTuple

from core.text import content_words
from core.types import Passage

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")

_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bSt\.)(?<!\bMr\.)(?<!\bDr\.)(?<!\bMrs\.)(?<!\bNo\.)\s+(?=[A-Z\"'(])")
_QUALIFIED = re.compile(r"^(?P<base>.+?)\s*\((?P<qualifier>[^()]+)\)$")
# a clause ends at punctuation, and at a word that begins another one, but not at the comma of a date or of "Portland, Oregon"
_CLAUSE = re.compile(
    r"[;:()–—]|,(?!\s+(?:\d{4}\b|[A-Z][a-z]+\s*(?:,|\.|$)))|\s(?:and|but|or)\s(?=(?:\w+\s+){0,3}\w+ed\b)"
    r"|\b(?:who|which|whose|where|that|whom|although|though|because|while|when|whereas|after which)\s"
)


class AnswerPlace(NamedTuple):
    """The place of an answer: a passage and a character offset in its text."""

    passage: Passage
    start: int

    @property
    def sentence(self) -> str:
        """The sentence of the passage that contains the answer."""
        begin, end = sentence_bounds(self.passage.text, self.start)
        return self.passage.text[begin:end]

    @property
    def words(self) -> set[str]:
        """The content words of the title and the sentence."""
        return set(content_words(f"{self.passage.title} {self.sentence}"))


def sentences(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each sentence; initials ("William A. Wellman") do not end one."""
    gaps = [(gap.start(), gap.end()) for gap in _SENTENCE.finditer(text)]
    return list(zip([0, *(end for _, end in gaps)], [*(start for start, _ in gaps), len(text)]))


def sentence_bounds(text: str, start: int) -> tuple[int, int]:
    """The (start, end) of the sentence that contains offset `start`."""
    return next(((a, b) for a, b in sentences(text) if a <= start < b), (0, len(text)))


def clauses_between(sentence: str, a: int, b: int) -> int:
    """The number of clause boundaries between two offsets of a sentence.

    >>> text = "It opened in Paris in 1900, which the king regretted."
    >>> clauses_between(text, 3, text.index("1900")), clauses_between(text, 3, text.index("king"))
    (0, 2)
    """
    return len(_CLAUSE.findall(sentence[min(a, b) : max(a, b)]))


def split_title(title: str) -> tuple[str, str]:
    """("West Side Story", "1961 film") from "West Side Story (1961 film)"; without a qualifier, the second is empty."""
    match = _QUALIFIED.match(title)
    return (match["base"], match["qualifier"]) if match else (title, "")


def headings(title: str) -> list[str]:
    """The headings above a section of a document, the outermost first; empty for a title that is no such path.

    >>> headings("Listening to others (Several users)"), headings("Hardware > Nvidia"), headings("Messiah (Handel)"), headings("Evita")
    (['Listening to others'], ['Hardware', 'Nvidia'], [], [])
    """
    if " > " in title:
        return [" ".join(re.sub(r"<[^>]*>|[`*\[\]“”]", "", part).split()) for part in title.split(" > ")]
    base, qualifier = split_title(title)
    sentence_case = any(word.islower() for word in base.split()[1:] if content_words(word))
    return [base] if sentence_case and qualifier[:1].isupper() else []
