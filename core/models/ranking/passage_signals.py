"""How a passage and a span of it fit a question, as numbers: which of its words they have, and whether the answer is of the kind that is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.disambiguation.evidence import sentence_bounds, split_title
from core.disambiguation.parts import fits
from core.models.ranking.units import NUMBER
from core.text import content_words, word_tokens
from core.types import Candidate, Passage

_STEM = 5  # letters of a word that are compared, to ignore endings
_HOW_MUCH = re.compile(r"\bhow (many|much|tall|long|old|deep|high|far|fast|big|large|heavy|wide|often)\b", re.IGNORECASE)
_SMALL = frozenset("of de van von der den la le du di da the and al ibn bin".split())  # inside names of people


class QuestionSignals:
    """The question's words relative to the retrieved passages, from which each passage's signals are computed."""

    def __init__(self, question: str, passages: Sequence[Passage]) -> None:
        self.words = [w[:_STEM] for w in word_tokens(question)]
        self.content = {w[:_STEM] for w in content_words(question)}
        self.named = {w.lower()[:_STEM] for w in re.findall(r"(?<!^)\b[A-Z][\w-]*", question)} & self.content
        self.most = max((_covered(self.content, _both(p)) for p in passages), default=0.0)

    def passage(self, passage: Passage) -> dict[str, float]:
        """Signals of one passage."""
        base = [w[:_STEM] for w in word_tokens(split_title(passage.title)[0]) if w not in ("the", "a", "an")]
        covered = _covered(self.content, _both(passage))
        return {
            "covered": covered,
            "covered_less_than_best": covered - self.most,
            "title_covers": _covered(self.content, passage.title),
            "title_run": _run(base, self.words) / len(base) if base else 0.0,
            "title_whole": float(bool(base) and all(w in self.words for w in base)),
            "names": _covered(self.named, _both(passage)) if self.named else 1.0,
        }


def wording(question: str, candidate: Candidate, text: str) -> dict[str, float]:
    """Signals of a span's wording in the passage `text`, and of its sentence's overlap with the question."""
    tokens = candidate.text.split()
    asked = {w[:_STEM] for w in content_words(question)}
    who = question.lower().lstrip().startswith("who")
    begin, end = sentence_bounds(text, candidate.evidence.start if candidate.evidence else 0)
    return {
        "long": float(len(tokens) > 5),
        "small_first": float(candidate.text[:1].islower()),
        "who_small": float(who and any(w[:1].islower() and w.lower() not in _SMALL for w in tokens)),
        "joined": float("," in candidate.text or " and " in candidate.text),
        "sentence_covers": _covered(asked, text[begin:end]),
    }


def _both(passage: Passage) -> str:
    return f"{passage.title} {passage.text}"


def _covered(asked: set[str], text: str) -> float:
    """The share of the asked words that are in the text; 0 without any."""
    have = {w[:_STEM] for w in word_tokens(text)}
    return sum(w in have for w in asked) / len(asked) if asked else 0.0


def _run(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common run of words.

    >>> _run(["west", "side", "story"], ["who", "saw", "side", "story"])
    2
    """
    best, row = 0, [0] * (len(b) + 1)
    for x in a:
        row = [0] + [row[j] + 1 if x == y else 0 for j, y in enumerate(b)]
        best = max(best, *row)
    return best


def kind(question: str, answer: str) -> float:
    """1 if the answer is of the kind that the question asks for, 0 if it cannot be, 0.5 if the question does not say.

    >>> kind("When did the dam open?", "1971"), kind("Who built it?", "1971"), kind("How deep is it?", "the north shore")
    (1.0, 0.0, 0.0)
    """
    asking = question.lower().strip()
    if _HOW_MUCH.search(asking):
        return float(bool(NUMBER.search(answer)))
    if not fits(asking, answer):
        return 0.0
    if asking.startswith("who"):
        return float(any(w[:1].isupper() for w in answer.split()))
    return 1.0 if asking.startswith(("when", "what date", "which year", "what year")) else 0.5
