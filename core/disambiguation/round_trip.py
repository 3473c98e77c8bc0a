"""Clarification by round trip: prompt question + answer + evidence -> the question rewritten so that this is its only answer.

Task: question disambiguation of AmbigQA (Min et al. 2020, section 2), a minimal edit.  Method: candidate edits (core.disambiguation.edits) come from the
title and the sentence of the answer's evidence; the best one is shown if core.disambiguation.scoring finds it good enough.  It is confirmed if, asked over
the same passages, it returns this answer and none of the others (round-trip filtering as in Refuel, Gao et al. 2021, section 3.3), and the reader, which
wrote neither, gives it the highest probability, above a half.  Without a good edit there is no question, only what distinguishes the answer (core.disambiguation.labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from core.decoding import run_answers
from core.disambiguation.evidence import AnswerPlace
from core.disambiguation.labels import label_answers, place_of
from core.disambiguation.scoring import MIN_PROBABILITY, Judge, proposals
from core.text import equal_for_display, overlapping
from core.types import Answer, BatchAnsweringModel, Clarification, Passage, RetrievedPassage


class AskAgain(Protocol):
    """Asks questions, each over its passages."""

    def __call__(
        self, pairs: Sequence[tuple[str, Sequence[Passage]]], ends: Callable[[str], bool] | None = None
    ) -> list[list[str]]:
        """For each (question, passages) the answers, the likeliest first.  Iterative implementations may stop after an answer for which
        `ends` is true."""
        ...


# (question, passage) pairs -> for each pair the text that a reader finds, or None if it abstains, with its probability
ReadAgain = Callable[[Sequence[tuple[str, Passage]]], list[tuple[str | None, float]]]
CONFIRMED = 0.0  # log odds of the answer, by the reader, from which on it agrees
MAX_ANSWERS = 4
ONLY_ANSWER = "one answer: the question stays as it is"


def same_answer(a: str, b: str) -> bool:
    """True if they are equal, or one contains the other's words."""
    return equal_for_display(a, b) or overlapping(a, b)


def confused(returned: Sequence[str], answer: str, others: Sequence[str]) -> bool:
    """True if one of the other answers is among what was returned."""
    return any(same_answer(r, o) for r in returned if not same_answer(r, answer) for o in others)


def returns_alone(returned: Sequence[str], answer: str, others: Sequence[str]) -> bool:
    """Whether the round trip passes: this answer is returned, and none of the others."""
    return any(same_answer(r, answer) for r in returned) and not confused(returned, answer, others)


def ask_with(make_model: Callable[[], BatchAnsweringModel]) -> AskAgain:
    """Asks an answering model until [EOI], all passages in one softmax; at most MAX_ANSWERS, because a question with more is not clear.
    `make_model` is called each time: a fast loop has the state of one run."""

    def ask(pairs: Sequence[tuple[str, Sequence[Passage]]], ends: Callable[[str], bool] | None = None) -> list[list[str]]:
        retrieved = [[RetrievedPassage(p, rank, 0.0) for rank, p in enumerate(passages, 1)] for _, passages in pairs]
        questions = [question for question, _ in pairs]
        return run_answers(make_model(), questions, retrieved, MAX_ANSWERS, batch=max(1, len(pairs)), ends=ends)

    return ask


def ask_each_passage(read_pairs: ReadAgain) -> AskAgain:
    """Asks a reader passage by passage; every answer counts unless it abstains."""

    def ask(pairs: Sequence[tuple[str, Sequence[Passage]]], ends: Callable[[str], bool] | None = None) -> list[list[str]]:
        readings = iter(read_pairs([(question, p) for question, passages in pairs for p in passages]))
        return [_returned([next(readings) for _ in passages]) for _, passages in pairs]

    return ask


def clarify(
    question: str, answers: Sequence[Answer], passages: Sequence[Passage], ask: AskAgain, judge: Judge
) -> Iterator[Clarification]:
    """One clarification per answer, in order.  With a single answer the question is already clear.

    `passed` means: over the same passages the reader returned this answer and none of the others, and the judge is sure of it.  The
    question is empty where no edit is good enough, with the reason in `why`; no two answers have the same question.
    """
    by_id = {p.id: p for p in passages}
    if len(answers) == 1:
        returned = ask([(question, passages)])[0]
        passed = any(same_answer(r, answers[0].text) for r in returned)
        yield Clarification(answers[0].text, "", passed, 0, tuple(returned), ONLY_ANSWER)
        return
    places = [place_of(a, by_id) for a in answers]
    edits = proposals(question, [a.text for a in answers], places)
    labels = label_answers(question, answers, places, edits)
    for n, answer in enumerate(answers):
        others = [(a, p) for m, (a, p) in enumerate(zip(answers, places)) if m != n and a.text != answer.text]
        place = places[n]
        if place is None:
            reason = "no passage contains this answer, so there is no edit to propose"
        elif not edits[n]:
            reason = "nothing in the evidence distinguishes this answer from the others"
        elif edits[n][0].probability < MIN_PROBABILITY:
            reason = "no rewritten question is good enough"
        else:
            yield replace(_asked_again(edits[n][0].question, answer, place, others, passages, ask, judge), label=labels[n])
            continue
        yield Clarification(answer.text, "", False, why=reason, label=labels[n])


def _asked_again(
    question: str,
    answer: Answer,
    place: AnswerPlace,
    others: Sequence[tuple[Answer, AnswerPlace | None]],
    passages: Sequence[Passage],
    ask: AskAgain,
    judge: Judge,
) -> Clarification:
    """The rewritten question, and whether reader and judge confirm it; without a label."""
    texts = [a.text for a, _ in others]
    (returned,) = ask([(question, passages)], ends=lambda text: confused([text], answer.text, texts))
    reason = ""
    if not returns_alone(returned, answer.text, texts):
        reason = "asked again, the question returns another answer, or more than one"
    else:
        log_odds, *rivals = judge(question, [span(answer, place), *(span(a, p) for a, p in others if p is not None)])
        if log_odds < CONFIRMED or log_odds <= max(rivals, default=-CONFIRMED):
            reason = "the reader is not sure of the answer"
    return Clarification(answer.text, question, not reason, 1, tuple(dict.fromkeys(returned)), reason)


def span(answer: Answer, place: AnswerPlace) -> tuple[Passage, int, int]:
    """The answer's span in the passage of its evidence, as a judge takes it."""
    end = next(
        (e.end for e in answer.evidence if (e.passage_id, e.start) == (place.passage.id, place.start)),
        place.start + len(answer.text),
    )
    return place.passage, place.start, end


def _returned(readings: Sequence[tuple[str | None, float]]) -> list[str]:
    """Distinct answers that the reader gave, the likeliest first."""
    out: list[str] = []
    for text, _ in sorted((r for r in readings if r[0]), key=lambda r: -r[1]):
        if text and not any(equal_for_display(text, o) for o in out):
            out.append(text)
    return out
