"""Clarification by round trip: prompt question + answer + evidence -> the question rewritten so that this is its only answer.

Task: question disambiguation of AmbigQA (Min et al. 2020, section 2), a minimal edit.  Method: candidate edits (core.disambiguation.edits) are taken from the
title and the sentence of the answer's evidence, and kept is the smallest one that, asked over the same passages, returns this answer and none of
the others (round-trip filtering as in Refuel, Gao et al. 2021, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Protocol

from core.decoding import run_answers
from core.disambiguation.edits import AnswerPlace, Edit, propose_edits
from core.text import equal_for_display, overlapping
from core.types import Answer, BatchAnsweringModel, Clarification, Passage, RetrievedPassage


class AskAgain(Protocol):
    """Asks questions, each over its passages."""

    def __call__(
        self,
        pairs: Sequence[tuple[str, Sequence[Passage]]],
        most: int | None = None,
        ends: Callable[[str], bool] | None = None,
    ) -> list[list[str]]:
        """For each (question, passages) the answers that it returns, the likeliest first.  Iterative implementations may stop after
        `most` answers, or after one for which `ends` is true."""
        ...


# (question, passage) pairs -> for each pair the text that a reader finds, or None if it abstains, with its probability
ReadAgain = Callable[[Sequence[tuple[str, Passage]]], list[tuple[str | None, float]]]
AT_A_TIME = (1, 3, 4)  # batch sizes of edits: the smallest edit passes about half of the time; the last size repeats


def same_answer(a: str, b: str) -> bool:
    """True if they are equal, or one contains the other's words."""
    return equal_for_display(a, b) or overlapping(a, b)


def confused(returned: Sequence[str], answer: str, others: Sequence[str]) -> bool:
    """True if one of the other answers is among what was returned."""
    return any(same_answer(r, o) for r in returned if not same_answer(r, answer) for o in others)


def returns_alone(returned: Sequence[str], answer: str, others: Sequence[str]) -> bool:
    """Whether the round trip passes: this answer is returned, and none of the others."""
    return any(same_answer(r, answer) for r in returned) and not confused(returned, answer, others)


def ask_with(model: BatchAnsweringModel, most: int = 4) -> AskAgain:
    """Asks an answering model until [EOI], all passages in one softmax; at most `most` answers, because a question with more is not clear."""
    limit = most

    def ask(
        pairs: Sequence[tuple[str, Sequence[Passage]]], most: int | None = None, ends: Callable[[str], bool] | None = None
    ) -> list[list[str]]:
        seen = [[RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)] for _, passages in pairs]
        questions = [question for question, _ in pairs]
        return run_answers(model, questions, seen, min(most or limit, limit), batch=max(1, len(pairs)), ends=ends)

    return ask


def ask_each_passage(read: ReadAgain) -> AskAgain:
    """Asks a reader passage by passage; every answer counts unless it abstains."""

    def ask(
        pairs: Sequence[tuple[str, Sequence[Passage]]], most: int | None = None, ends: Callable[[str], bool] | None = None
    ) -> list[list[str]]:
        readings = iter(read([(question, p) for question, passages in pairs for p in passages]))
        return [_returned([next(readings) for _ in passages]) for _, passages in pairs]

    return ask


def clarify(question: str, answers: Sequence[Answer], passages: Sequence[Passage], ask: AskAgain) -> Iterator[Clarification]:
    """One clarification per answer, in order.  With a single answer the question is already clear.

    `passed` means: over the same passages the reader returned this answer and none of the others.  If no edit passes, the best one is
    returned with the reason in `why`.
    """
    by_id = {p.id: p for p in passages}
    if len(answers) == 1:
        returned = ask([(question, passages)])[0]
        passed = any(same_answer(r, answers[0].text) for r in returned)
        yield Clarification(answers[0].text, question, passed, 0, tuple(returned), "one answer: the question stays as it is")
        return
    for answer in answers:
        others = [a for a in answers if a.text != answer.text]
        place = _place(answer, by_id)
        if place is None:
            yield Clarification(
                answer.text, question, False, 0, (), "no passage contains this answer, so there is no edit to propose"
            )
            continue
        rivals = [p for p in (_place(a, by_id) for a in others) if p is not None]
        edits = propose_edits(question, answer.text, place, rivals)
        yield _best(question, answer, others, edits, place.passage, [r.passage for r in rivals], passages, ask)


def _place(answer: Answer, by_id: dict[str, Passage]) -> AnswerPlace | None:
    return next((AnswerPlace(by_id[e.passage_id], e.start) for e in answer.evidence if e.passage_id in by_id), None)


def _returned(readings: Sequence[tuple[str | None, float]]) -> list[str]:
    """Distinct answers that the reader gave, the likeliest first."""
    out: list[str] = []
    for text, _ in sorted((r for r in readings if r[0]), key=lambda r: -r[1]):
        if text and not any(equal_for_display(text, o) for o in out):
            out.append(text)
    return out


def _groups(edits: Sequence[Edit]) -> Iterator[Sequence[Edit]]:
    first = 0
    for size in chain(AT_A_TIME, repeat(AT_A_TIME[-1])):
        if first >= len(edits):
            return
        yield edits[first : first + size]
        first += size


def _best(
    question: str,
    answer: Answer,
    others: Sequence[Answer],
    edits: Sequence[Edit],
    own: Passage,
    rivals: Sequence[Passage],
    passages: Sequence[Passage],
    ask: AskAgain,
) -> Clarification:
    if not edits:
        why = "nothing in the evidence distinguishes this answer from the others"
        return Clarification(answer.text, question, False, 0, (), why)
    # first the likeliest answer over the passages that decide (this answer's and its rivals'), then whole runs over all of them; a few edits at a
    # time, as the first ones mostly pass and reading is what a clarification costs
    deciding = list({p.id: p for p in (own, *rivals)}.values())
    look = None if len(deciding) == len(passages) else 1  # where all passages decide, the first look is the whole run
    other_texts = [o.text for o in others]
    failed: list[tuple[tuple[int, float], Clarification]] = []
    halves = any(e.kind == "part" for e in edits)  # of a double question: what another answer answers is the other half

    def spoils(returned: str) -> bool:
        return confused([returned], answer.text, other_texts)

    for group in _groups(edits):
        for edit, returned in zip(group, ask([(e.question, deciding) for e in group], look, spoils)):
            again = look is not None and bool(returned) and not confused(returned, answer.text, other_texts)
            if again:
                returned = ask([(edit.question, passages)], ends=spoils)[0]
            if returns_alone(returned, answer.text, other_texts):
                tried = edits.index(edit) + 1
                return Clarification(answer.text, edit.question, True, tried, tuple(dict.fromkeys(returned)), "")
            if not confused(returned, answer.text, other_texts):
                rank, why = 2, "for this question, the reader does not return the answer"
            elif again:
                rank, why = 0, "over all passages, another answer is returned as well or instead"
            else:
                rank, why = 1, "for this question, the reader also returns another answer"
            if halves and rank != 2:
                continue
            shown = Clarification(answer.text, edit.question, False, len(edits), tuple(dict.fromkeys(returned)), why)
            failed.append(((rank, edit.cost), shown))
    if not failed:
        why = "the reader answers each half of the question with another answer"
        return Clarification(answer.text, question, False, len(edits), (), why)
    return min(failed, key=lambda f: f[0])[1]
