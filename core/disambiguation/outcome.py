"""The outcome of a question: answered, ambiguous (then a clarifying question with its options), or no answer; and where
documents disagree.

Source: the three cases of AmbigNQ's annotations (Min et al. 2020, section 3), as a system shows them; asking back with the options that the corpus has is
VerDICt's use of them (Lee et al. 2025, section 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from core.disambiguation.conflicts import Conflict, conflicts
from core.types import Prediction

Outcome = Literal["answered", "ambiguous", "no answer"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
WHICH_ONE = "Which one do you mean?"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One option of a clarifying question.  `label`: what distinguishes it.  `question`: asked in its place.  `others`: the
    answers of other documents."""

    label: str
    question: str
    answer: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClarifyingQuestion:
    question: str
    options: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class PredictionOutcome:
    """A prediction's outcome.  `clarification`: only for an ambiguous question.  `conflicts`: answers to one meaning on which
    documents disagree."""

    outcome: Outcome
    clarification: ClarifyingQuestion | None
    conflicts: tuple[Conflict, ...]


def outcome_of(meanings: int) -> Outcome:
    """The outcome for a number of meanings that have an answer.

    >>> [outcome_of(n) for n in (0, 1, 2)]
    ['no answer', 'answered', 'ambiguous']
    """
    return "no answer" if not meanings else "answered" if meanings == 1 else "ambiguous"


def result_of(prediction: Prediction) -> PredictionOutcome:
    """A prediction's outcome.  Answers on which documents disagree are one meaning, labelled with what distinguishes it, or
    else with its question or its answer, in the order of the answers.

    Only meanings are asked about: where questions were written and fewer than two answers have what distinguishes them, the answers are a list.
    """
    disagreements = conflicts(prediction.question.text, prediction.answers, [p.passage for p in prediction.passages])
    others = {c.answers[0]: c.answers[1:] for c in disagreements}
    repeated = {answer for texts in others.values() for answer in texts}
    answers = [a for a in prediction.answers if a.text not in repeated]
    clarifications = [prediction.clarification_of(a.text) for a in answers]
    options = [
        Meaning((c and (c.label or c.question)) or a.text, prediction.question_of(a.text), a.text, others.get(a.text, ()))
        for a, c in zip(answers, clarifications)
    ]
    is_list = any(clarifications) and sum(bool(c and (c.label or c.question)) for c in clarifications) < 2
    outcome = outcome_of(min(len(options), 1) if is_list else len(options))
    asked_back = ClarifyingQuestion(WHICH_ONE, tuple(options)) if outcome == "ambiguous" else None
    return PredictionOutcome(outcome, asked_back, disagreements)


@dataclass(frozen=True, slots=True)
class OutcomeScores:
    """Scores over the questions whose references agree on an outcome.  `counts[reference][predicted]`."""

    n: int
    accuracy: float
    macro_f1: float  # mean F1 of the outcomes that occur among the references or the predictions
    counts: dict[Outcome, dict[Outcome, int]]


def outcome_scores(pairs: Iterable[tuple[Outcome, Outcome]]) -> OutcomeScores | None:
    """The scores of (reference, predicted) pairs; None without any.

    >>> outcome_scores([("answered", "answered"), ("ambiguous", "answered")]).macro_f1
    0.3333333333333333
    """
    pair_counts = Counter(pairs)
    if not (n := sum(pair_counts.values())):
        return None
    f1 = []
    for outcome in OUTCOMES:
        correct = pair_counts[outcome, outcome]
        references = sum(pair_counts[outcome, other] for other in OUTCOMES)
        predictions = sum(pair_counts[other, outcome] for other in OUTCOMES)
        if references or predictions:
            f1.append(2 * correct / (references + predictions))
    counts = {a: {b: pair_counts[a, b] for b in OUTCOMES} for a in OUTCOMES}
    return OutcomeScores(n, sum(pair_counts[o, o] for o in OUTCOMES) / n, sum(f1) / len(f1), counts)


def reference_outcome(pairs_of_annotations: Sequence[int]) -> Outcome | None:
    """The outcome by the number of question-answer pairs in each annotation; None if the annotations disagree.

    >>> reference_outcome([2, 3]), reference_outcome([1, 2])
    ('ambiguous', None)
    """
    outcomes = {outcome_of(n) for n in pairs_of_annotations}
    return outcomes.pop() if len(outcomes) == 1 else None
