"""The input and output of a writer of disambiguated questions (core.models.language.writer)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.disambiguation.evidence import AnswerPlace
from core.types import Answer, Passage

EXCERPT_WORDS = 36  # around the answer


@dataclass(frozen=True, slots=True)
class AnswerExcerpt:
    """An answer with the title of its passage and the words around it, both empty if it has no passage."""

    answer: str
    title: str = ""
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class QuestionDraft:
    """A question that was written for an answer, and its log probability, a mean over its tokens."""

    question: str
    log_probability: float


# (prompt question, its answers) -> for each answer its drafts, the likeliest first
WriteDrafts = Callable[[str, Sequence[AnswerExcerpt]], list[list[QuestionDraft]]]


def place_of(answer: Answer, passages: Mapping[str, Passage]) -> AnswerPlace | None:
    """The place of the answer's first evidence in the passages."""
    return next((AnswerPlace(passages[e.passage_id], e.start) for e in answer.evidence if e.passage_id in passages), None)


def excerpt_of(answer: Answer, passages: Mapping[str, Passage]) -> AnswerExcerpt:
    """The excerpt around the answer's first evidence in the passages (by id), or the answer alone if there is none."""
    evidence = next((e for e in answer.evidence if e.passage_id in passages), None)
    if evidence is None:
        return AnswerExcerpt(answer.text)
    passage = passages[evidence.passage_id]
    return AnswerExcerpt(answer.text, passage.title, excerpt(passage.text, evidence.start, evidence.end))


def excerpt(text: str, start: int, end: int, words: int = EXCERPT_WORDS) -> str:
    """At most `words` words of a text around the characters [start, end), evenly before and after if the text has them.

    >>> excerpt("one two three four five six seven", 14, 18, words=3)
    'three four five'
    """
    before, answer, after = text[:start].split(), text[start:end].split(), text[end:].split()
    room = max(0, words - len(answer))
    n_after = min(len(after), max(room - room // 2, room - len(before)))
    n_before = min(len(before), room - n_after)
    head = text[:start].rsplit(None, n_before)[-n_before:] if n_before else []
    glue_before = "" if start and not text[start - 1].isspace() else " "
    glue_after = "" if end < len(text) and not text[end].isspace() else " "
    tail = text[end:].split(None, n_after)[:n_after]
    return f"{' '.join(head)}{glue_before}{' '.join(answer)}{glue_after}{' '.join(tail)}".strip()
