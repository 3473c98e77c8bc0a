"""Clarifiers write the disambiguated questions of a system's answers: the round trip, a sequence-to-sequence model, or a copy of the prompt.

Sources: question disambiguation as in AmbigQA (Min et al. 2020, section 5: a model conditioned on the prompt question, the target answer, the
other answers and the passages; and the baseline that copies the prompt question); round-trip filtering as in Refuel (Gao et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from core.disambiguation.form import well_formed
from core.disambiguation.round_trip import ONLY_ANSWER, AskAgain, clarify, returns_alone
from core.disambiguation.scoring import Judge
from core.types import Answer, Clarification, Passage

Clarifier = Callable[[str, Sequence[Answer], Sequence[Passage]], Iterator[Clarification]]


class Rewriter(Protocol):
    """Writes disambiguated questions (core.models.seq2seq.rewriter)."""

    def rewrite_many(self, jobs: Sequence[tuple[str, str, Sequence[str], Sequence[Passage]]]) -> list[list[str]]:
        """Candidates, the best first, for each (prompt question, target answer, other answers, passages)."""
        ...


def by_round_trip(ask: AskAgain, judge: Judge) -> Clarifier:
    """Minimal edits from the evidence, the best one where it is good enough (core.disambiguation.round_trip)."""
    return lambda question, answers, passages: clarify(question, answers, passages, ask, judge)


def by_copying(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> Iterator[Clarification]:
    """AmbigQA's baseline: the prompt question for every answer.  Nothing is verified, so only a single answer counts as clear."""
    reason = "the prompt question is copied" if len(answers) > 1 else ONLY_ANSWER
    for answer in answers:
        yield Clarification(answer.text, "", len(answers) == 1, 0, (), reason)


def by_rewriting(rewriter: Rewriter, ask: AskAgain | None) -> Clarifier:
    """The model's candidates; with `ask`, the first one that passes the round trip over all passages, else the best one with the reason."""

    def rewrite(question: str, answers: Sequence[Answer], passages: Sequence[Passage]) -> Iterator[Clarification]:
        if len(answers) == 1:
            yield from by_copying(question, answers, passages)
            return
        texts = [a.text for a in answers]
        jobs = [(question, text, [t for t in texts if t != text], passages) for text in texts]
        for (_, text, others, _), candidates in zip(jobs, rewriter.rewrite_many(jobs)):
            unlike = [c for c in candidates if well_formed(question, c)]
            if not unlike:
                yield Clarification(
                    text, "", False, len(candidates), (), "the model repeats the prompt question, or writes no question"
                )
            elif ask is None:
                yield Clarification(text, unlike[0], False, 1, (), "written by the model; not verified")
            else:
                yield _verified(text, others, unlike, passages, ask)

    return rewrite


def _verified(
    text: str, others: Sequence[str], candidates: Sequence[str], passages: Sequence[Passage], ask: AskAgain
) -> Clarification:
    returned = ask([(candidate, passages) for candidate in candidates])
    for candidate, answers in zip(candidates, returned):
        if returns_alone(answers, text, others):
            return Clarification(text, candidate, True, len(candidates), tuple(dict.fromkeys(answers)), "")
    reason = "for this question, the reader does not return only this answer"
    return Clarification(text, candidates[0], False, len(candidates), tuple(dict.fromkeys(returned[0])), reason)
