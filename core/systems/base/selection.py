"""Which of a system's candidates are its answers, and the events of an answer set.

A system that reads once keeps the candidates above its threshold (Min et al. 2020, section 5), or, by the rule `expected-f1`, the set of highest
expected F1, which needs calibrated probabilities (core.models.ranking.calibration).

Sources of the expectation: Lewis 1995, "Evaluating and optimizing autonomous text classification systems" (where candidates are right independently of
one another, the best set of a size holds the most probable ones, so that only the sizes need be compared); Ye, Chai, Lee and Chieu 2012, "Optimizing
F-measures: a tale of two approaches", section 4 (the expectation by the distribution of counts).  An empty set if nothing is right has the F1 1, as there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core import types as t
from core.errors import InputError
from core.models.loading.finding import named_folder
from core.models.ranking.calibration import Calibration, describe, read_calibration
from core.systems.base.options import Scoring, StoppingRule
from core.text import answer_key, answer_words, occurrences, shares_words

if TYPE_CHECKING:
    from core.models.span.reader import Readout

MIN_ANSWERS = 1  # of `expected-f1`: no reference set is empty
STEP_CANDIDATES = 8  # candidates in the first step of a trace


# ------------------------------------------------------------ the expected F1


def counts(probabilities: Sequence[float]) -> list[float]:
    """P(exactly j of the candidates are right) for j = 0..n: the Poisson binomial distribution.  Raises InputError for a value outside 0..1.

    >>> counts([0.5, 0.5])
    [0.25, 0.5, 0.25]
    """
    out = [1.0]
    for p in probabilities:
        if not 0.0 <= p <= 1.0:
            raise InputError(f"{p} is not a probability; it must be between 0 and 1")
        out = [(1 - p) * stays + p * grows for stays, grows in zip([*out, 0.0], [0.0, *out])]
    return out


def expected_f1(selected: Sequence[float], others: Sequence[float]) -> float:
    """The expected F1 of selecting some candidates and not the others, each right with its probability, independently of the others.

    With i right ones of k selected and j right ones among the others, F1 is 2i / (k + i + j).

    >>> expected_f1([1.0], [0.5]), expected_f1([], [0.25])
    (0.8333333333333333, 0.75)
    """
    right, missed = counts(selected), counts(others)
    if not selected:
        return missed[0]
    return sum(p * q * 2 * i / (len(selected) + i + j) for i, p in enumerate(right) for j, q in enumerate(missed))


def most_expected(candidates: Sequence[float], previous: Sequence[float] = (), min_answers: int = 0) -> int:
    """How many of the candidates to select in addition to the `previous` answers: the smallest number of the most probable ones with the highest
    expected F1.  `min_answers`: the minimum, including previous ones, if there are enough.

    >>> most_expected([0.9, 0.6, 0.1]), most_expected([0.6, 0.1], previous=[1.0]), most_expected([0.1, 0.1])
    (2, 1, 0)
    >>> most_expected([0.1, 0.1], min_answers=1)  # an empty set is never right if an answer is known to exist
    2
    """
    order = sorted(candidates, reverse=True)
    sizes = range(min(len(order), max(0, min_answers - len(previous))), len(order) + 1)
    return max(sizes, key=lambda k: (round(expected_f1([*previous, *order[:k]], order[k:]), 12), -k))


# ------------------------------------------------------------ calibrations


@dataclass(frozen=True)
class CalibrationKey:
    """Where a system's calibration is: next to the weights of `kind`, under `name`; `weights`: a digest of all that affects its probabilities.

    `fallback`: the name that is looked for where there is none under `name`.
    """

    name: str = ""
    kind: str = ""
    weights: str = ""
    fallback: str = ""

    def of_own_passages(self) -> CalibrationKey:
        """The key for questions that bring their passages, which somebody selected; without a calibration there, that of retrieved ones is used."""
        return replace(self, name=f"{self.name} own", fallback=self.name)

    def find(self, checkpoint: str, rule: StoppingRule, switch: str) -> Calibration | None:
        """Loads the system's calibration, if used.  `checkpoint`: name of the weights; `rule` and `switch`: the options `stop` and `calibration`.

        Raises InputError if the rule needs a missing calibration, CheckpointError.
        """
        folder = named_folder(checkpoint, self.kind)
        calibration = None
        if folder is not None and switch == "on":
            calibration = read_calibration(folder, self.name, self.weights)
            if calibration is None and self.fallback:
                calibration = read_calibration(folder, self.fallback, self.weights)
        if calibration is None and rule == "expected-f1":
            raise InputError(
                f"stop=expected-f1 needs calibrated probabilities, but there are none for '{self.name}' with these weights; use another rule, "
                "leave calibration on, or fit one with: python -m core train calibration"
            )
        return calibration


UNCALIBRATED = CalibrationKey()


def digest_of(*parts: object) -> str:
    """First 16 hex digits of the sha256 of everything that affects a system's probabilities."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


# ------------------------------------------------------------ selecting


def distinct(candidates: Sequence[t.Candidate], previous: Sequence[str] = ()) -> list[t.Candidate]:
    """The candidates that neither contain nor are part of a better one or of a `previous` answer: at most one of two readings of an answer is right."""
    selected: list[t.Candidate] = []
    for c in candidates:
        if not shares_words(c.text, (*previous, *(s.text for s in selected))):
            selected.append(c)
    return selected


def candidates_of(readouts: Sequence[Readout], scoring: Scoring = "passage", each: int = 2) -> list[t.Candidate]:
    """Distinct candidates of all passages, the likeliest first; an answer in several passages counts once, with its best probability.

    `scoring`: "passage" is P(span | question, passage), abstention included; "dpr" is P(passage | question) P(span | question, passage,
    not abstaining), so that the passages compete.  `each`: candidates per passage.
    """
    from core.models.span.reader import relevances  # torch

    shares = relevances(readouts) if scoring == "dpr" else [1.0] * len(readouts)
    merged: dict[str, t.Candidate] = {}
    for readout, share in zip(readouts, shares):
        answering = readout.answers_probability if scoring == "dpr" else 1.0
        for c in readout.candidates[:each]:
            probability = min(1.0, share * c.probability / answering)
            key = answer_words(c.text)
            if key and (key not in merged or merged[key].probability < probability):
                merged[key] = t.Candidate(c.text, probability, c.evidence)
    return sorted(merged.values(), key=lambda c: -c.probability)


@dataclass(frozen=True)
class Selection:
    """The selection of a system that reads once: pinned answers, then the candidates that its rule keeps.  `key`: of its calibration."""

    threshold: float
    rule: StoppingRule = "threshold"
    calibration: Calibration | None = None
    key: CalibrationKey = UNCALIBRATED

    def keep(
        self, candidates: Sequence[t.Candidate], question: t.Question, max_answers: int
    ) -> tuple[list[t.Candidate], tuple[t.Candidate, ...]]:
        """(kept candidates, all candidates), calibrated if possible.  `candidates`: likeliest first.

        Keeps no banned candidate, none that is part of another, and at most `max_answers`, including pinned ones.
        """
        banned = {answer_key(b) for b in question.banned}
        pinned = [t.Candidate(p, 1.0) for p in question.pinned]
        free = distinct([c for c in candidates if answer_key(c.text) not in banned], question.pinned)
        free = free[: max(0, max_answers - len(pinned))]
        if self.rule == "threshold":
            free = [c for c in free if c.probability >= self.threshold]
        calibration = self.calibration
        if calibration is None:
            return [*pinned, *free], tuple(candidates)
        free = list(calibration.candidates(free))
        if self.rule == "expected-f1":
            free = free[: most_expected([c.probability for c in free], [1.0] * len(pinned), MIN_ANSWERS)]
        return [*pinned, *free], calibration.candidates(candidates)

    def description(self) -> str:
        """Which answers were kept, for `Finished.why`."""
        return (
            "the answers of the highest expected F1" if self.rule == "expected-f1" else f"every answer above {self.threshold:g}"
        )

    def about(self) -> dict[str, Any]:
        """The entry in SystemInfo."""
        return {"calibration": describe(self.calibration)}


def choose(candidates: Sequence[t.Candidate], question: t.Question, threshold: float, max_answers: int) -> list[t.Candidate]:
    """Pinned answers, then the candidates whose probability reaches the threshold: none that is banned, none that is part of another."""
    return Selection(threshold).keep(candidates, question, max_answers)[0]


# ------------------------------------------------------------ events


def evidence_of(candidate: t.Candidate, passages: Sequence[t.RetrievedPassage]) -> tuple[t.Evidence, ...]:
    """Where a candidate was read, then the other places where the passages have its text."""
    own = (candidate.evidence,) if candidate.evidence else ()
    return own + tuple(
        e for e in occurrences(candidate.text, passages) if all((e.passage_id, e.start) != (o.passage_id, o.start) for o in own)
    )


def answer_events(
    kept: Sequence[t.Candidate],
    candidates: Sequence[t.Candidate],
    pinned: int,
    passages: Sequence[t.RetrievedPassage],
    seconds: float,
    first: int = 1,
    before: Sequence[str] = (),
    prompt: str = "",
) -> Iterator[t.StepFinished]:
    """One StepFinished for each kept answer; the first has all candidates and the total seconds.

    `pinned`: how many of them a person set; `first`: number of the first step; `before`: earlier answers; `prompt`: of each step.
    """
    previous = list(before)
    for i, c in enumerate(kept):
        step_candidates = tuple(candidates[:STEP_CANDIDATES]) if i == 0 else (c,)
        step = t.Step(first + i, tuple(previous), prompt, step_candidates, c, 0.0, seconds if i == 0 else 0.0)
        yield t.StepFinished(step, t.Answer(c.text, c.probability, evidence_of(c, passages), first + i, i < pinned))
        previous.append(c.text)
