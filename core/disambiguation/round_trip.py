"""Clarification: prompt question + answers + evidence -> each answer's own question, written by a model and asked back.

Task: question disambiguation of AmbigQA (Min et al. 2020, section 5).  Filter: the round trip of Refuel (Gao et al. 2021, section 3.3): the reader, asked
a draft over the passages of all answers, returns this answer and no other.  Of the drafts that pass, the one that core.disambiguation.scoring
finds best is shown if it is good enough.  What distinguishes an answer in a few words comes from its question (core.disambiguation.labels).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol

from core.disambiguation.drafts import QuestionDraft, WriteDrafts, excerpt_of, place_of
from core.disambiguation.evidence import AnswerPlace
from core.disambiguation.labels import labels_of
from core.disambiguation.scoring import MIN_PROBABILITY, Features, well_formed
from core.text import answer_key, overlapping, question_key
from core.types import Answer, Candidate, Clarification, Passage

DRAFTS_ASKED = 2  # of an answer
ONLY_ANSWER = "one answer: the question stays as it is"
_SURE = 1e-6  # probabilities are kept this far from 0 and 1


class PassageReadout(Protocol):
    """A reader's output for one passage (core.models.span.reader.Readout)."""

    @property
    def candidates(self) -> Sequence[Candidate]:
        """Spans, the likeliest first."""
        ...

    @property
    def best(self) -> Candidate | None:
        """The first of them, or None if abstaining is likelier."""
        ...


Read = Callable[[Sequence[tuple[str, Passage]]], Sequence[PassageReadout]]  # of (question, passage) pairs


@dataclass(frozen=True, slots=True)
class AskedDraft:
    """A draft that was asked back.  `returned`: the reader's answers, likeliest first.  `passed`: it returned this answer and
    no other."""

    draft: QuestionDraft
    features: Features
    returned: tuple[str, ...]
    passed: bool

    @property
    def is_shown(self) -> bool:
        """Whether people see the draft: it passed, and is good enough."""
        return self.passed and self.features.probability >= MIN_PROBABILITY


def best_draft(asked: Sequence[AskedDraft]) -> AskedDraft | None:
    """The best of an answer's drafts, those that passed first; None if there are none."""
    return max(asked, key=lambda a: (a.passed, a.features.probability), default=None)


def same_answer(a: str, b: str) -> bool:
    """True if they are equal, or one contains the other's words."""
    return answer_key(a) == answer_key(b) or overlapping(a, b)


def returns_alone(returned: Sequence[str], answer: str, others: Sequence[str]) -> bool:
    """Whether the round trip passes: this answer is returned and none of the others."""
    right = [same_answer(r, answer) for r in returned]
    return any(right) and not any(same_answer(r, o) for r, is_right in zip(returned, right) if not is_right for o in others)


def clarify(
    question: str, answers: Sequence[Answer], passages: Sequence[Passage], write: WriteDrafts, read: Read
) -> Iterator[Clarification]:
    """One clarification for each answer, in order.  With a single answer the question is already clear.

    A question is only given where over the passages of all answers the reader returned this answer and none of the others, which `passed`
    says, and where the draft is good enough; else `why` has the reason.  No two answers have the same question.
    """
    if len(answers) == 1:
        yield Clarification(answers[0].text, "", True, why=ONLY_ANSWER)
        return
    drafts_by_answer = ask_back(question, answers, passages, write, read)
    best = [best_draft(options) for options in drafts_by_answer]
    # what a draft that failed says more than the question is often true of another answer
    labels = labels_of(question, [a.draft.question if a and a.passed else "" for a in best])
    by_id = {p.id: p for p in passages}
    for answer, option, label in zip(answers, best, labels):
        if option is not None and option.is_shown:
            yield Clarification(answer.text, option.draft.question, True, DRAFTS_ASKED, option.returned, "", label)
            continue
        if place_of(answer, by_id) is None:
            why = "no passage contains this answer"
        elif option is None:
            why = "nothing that was written distinguishes this answer from the others"
        else:
            why = (
                "no written question is good enough"
                if option.passed
                else "asked again, no written question returns this answer alone"
            )
        yield Clarification(answer.text, "", False, why=why, label=label)


def _own_drafts(
    question: str, answers: Sequence[Answer], drafts: Sequence[Sequence[QuestionDraft]]
) -> list[list[QuestionDraft]]:
    """Each answer's drafts that are well formed and that no other answer has with a higher probability."""
    owners: dict[str, tuple[float, int]] = {}
    for n, options in enumerate(drafts):
        for d in options:
            key = question_key(d.question)
            owners[key] = max(owners.get(key, (d.log_probability, n)), (d.log_probability, n))
    return [
        [d for d in options if owners[question_key(d.question)][1] == n and well_formed(question, d.question, answer.text)]
        for n, (answer, options) in enumerate(zip(answers, drafts))
    ]


def ask_back(
    question: str, answers: Sequence[Answer], passages: Sequence[Passage], write: WriteDrafts, read: Read
) -> list[list[AskedDraft]]:
    """Each answer's likeliest draft, asked over the passages of all answers; the next one only where that one did not pass.

    One batch for each draft of an answer: the first ones of all answers are read together.
    """
    by_id = {p.id: p for p in passages}
    places = [place_of(a, by_id) for a in answers]
    drafts = _own_drafts(question, answers, write(question, [excerpt_of(a, by_id) for a in answers]))
    around = list({p.passage.id: p.passage for p in places if p is not None}.values())
    out: list[list[AskedDraft]] = [[] for _ in answers]
    for number in range(DRAFTS_ASKED):
        jobs = [
            (n, place, options[number])
            for n, (place, options) in enumerate(zip(places, drafts))
            if place is not None and number < len(options) and not any(a.passed for a in out[n])
        ]
        readings = iter(read([(d.question, p) for *_, d in jobs for p in around]) if jobs else ())
        for n, place, draft in jobs:
            by_passage = {p.id: next(readings) for p in around}
            returned = _returned(list(by_passage.values()))
            own = _log_odds(by_passage[place.passage.id], answers[n], place)
            others = [a.text for a in answers if a.text != answers[n].text]
            passed = returns_alone(returned, answers[n].text, others)
            out[n].append(AskedDraft(draft, Features(draft.log_probability, own), returned, passed))
    return out


def _log_odds(reading: PassageReadout, answer: Answer, place: AnswerPlace) -> float:
    """The log odds of the probability that the reader gives to the spans that overlap the answer's."""
    spans = [(e.start, e.end) for e in answer.evidence if e.passage_id == place.passage.id]
    total = sum(
        c.probability
        for c in reading.candidates
        if c.evidence and any(c.evidence.start < end and start < c.evidence.end for start, end in spans)
    )
    total = min(1 - _SURE, max(_SURE, total))
    return log(total / (1 - total))


def _returned(readings: Sequence[PassageReadout]) -> tuple[str, ...]:
    """The distinct best answers of the passages on which the reader doesn't abstain, likeliest first."""
    out: list[str] = []
    for c in sorted((r.best for r in readings if r.best is not None), key=lambda c: -c.probability):
        if not any(answer_key(c.text) == answer_key(o) for o in out):
            out.append(c.text)
    return tuple(out)
