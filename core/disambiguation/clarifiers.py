"""Clarifiers give the answers of a system their disambiguated questions: the writer with a round trip, or a copy of the prompt.

Sources: question disambiguation as in AmbigQA (Min et al. 2020, section 5: a model conditioned on the prompt question, the target answer, the
other answers and the passages; and the baseline that copies the prompt question).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.disambiguation.drafts import WriteDrafts
from core.disambiguation.round_trip import ONLY_ANSWER, Read, clarify
from core.types import Answer, Clarification, Passage

Clarifier = Callable[[str, Sequence[Answer], Sequence[Passage]], Iterator[Clarification]]


def by_writing(write: WriteDrafts, read: Read) -> Clarifier:
    """The best draft for each answer, if it is good enough (core.disambiguation.round_trip)."""
    return lambda question, answers, passages: clarify(question, answers, passages, write, read)


def by_copying(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> Iterator[Clarification]:
    """AmbigQA's baseline: the prompt question for every answer. Nothing is verified, so only a single answer counts as
    clear."""
    reason = "the prompt question is copied" if len(answers) > 1 else ONLY_ANSWER
    for answer in answers:
        yield Clarification(answer.text, "", len(answers) == 1, why=reason)
