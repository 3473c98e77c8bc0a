"""Selects a system's answers from its candidates, and makes the events of an answer set.

A system that reads once keeps the candidates above its threshold (Min et al. 2020, section 5).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core import types as t
from core.models.loading.finding import named_folder
from core.models.ranking.calibration import Calibration, read_calibration
from core.systems.base.options import Scoring
from core.text import answer_key, answer_words, occurrences, shares_words

if TYPE_CHECKING:
    from core.models.span.reader import Readout


@dataclass(frozen=True)
class CalibrationKey:
    """The location of a system's calibration: next to the weights of `kind`, under `name`.  `weights`: a digest of everything
    that affects its probabilities."""

    name: str = ""
    kind: str = ""
    weights: str = ""

    def find(self, checkpoint: str, switch: str) -> Calibration | None:
        """Loads the system's calibration, if there is one.  `checkpoint`: the name of the weights.  `switch`: the option
        `calibration`.

        Raises CheckpointError.
        """
        folder = named_folder(checkpoint)
        return read_calibration(folder, self.name, self.weights) if folder is not None and switch == "on" else None


UNCALIBRATED = CalibrationKey()


def digest_of(*parts: object) -> str:
    """The first 16 hex digits of the sha256 of everything that affects a system's probabilities."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]


def distinct(candidates: Sequence[t.Candidate], previous: Sequence[str] = ()) -> list[t.Candidate]:
    """The candidates that neither contain nor are part of a better one or of a `previous` answer, because at most one of two
    readings of an answer is right."""
    selected: list[t.Candidate] = []
    for c in candidates:
        if not shares_words(c.text, (*previous, *(s.text for s in selected))):
            selected.append(c)
    return selected


def candidates_of(readouts: Sequence[Readout], scoring: Scoring = "passage", each: int = 2) -> list[t.Candidate]:
    """The distinct candidates of all passages, the likeliest first.  An answer in several passages counts once, with its best
    probability.

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
class OnePassSelection:
    """The selection of a system that reads once: pinned answers, then the candidates above its threshold.  `key` locates its
    calibration."""

    threshold: float
    calibration: Calibration | None = None
    key: CalibrationKey = UNCALIBRATED

    def keep(
        self, candidates: Sequence[t.Candidate], question: t.Question, max_answers: int
    ) -> tuple[list[t.Candidate], tuple[t.Candidate, ...]]:
        """(selected candidates, all candidates), calibrated if possible.  `candidates`: likeliest first.

        Selects no banned candidate, none that is part of another, and at most `max_answers`, including pinned ones.
        """
        banned = {answer_key(b) for b in question.banned}
        pinned = [t.Candidate(p, 1.0) for p in question.pinned]
        selected = distinct([c for c in candidates if answer_key(c.text) not in banned], question.pinned)
        selected = selected[: max(0, max_answers - len(pinned))]
        selected = [c for c in selected if c.probability >= self.threshold]
        if self.calibration is None:
            return [*pinned, *selected], tuple(candidates)
        return [*pinned, *self.calibration.candidates(selected)], self.calibration.candidates(candidates)

    def description(self) -> str:
        """The rule that selected the answers, for `Finished.why`."""
        return f"every answer above {self.threshold:g}"


def choose(candidates: Sequence[t.Candidate], question: t.Question, threshold: float, max_answers: int) -> list[t.Candidate]:
    """Pinned answers, then the candidates whose probability reaches the threshold, without banned ones and parts of others."""
    return OnePassSelection(threshold).keep(candidates, question, max_answers)[0]


def evidence_of(
    text: str, evidence: Iterable[t.Evidence | None], passages: Sequence[t.RetrievedPassage]
) -> tuple[t.Evidence, ...]:
    """The place where an answer was read (`evidence`), then the other places where the passages have its text."""
    sources = tuple(dict.fromkeys(e for e in evidence if e is not None))
    positions = {(e.passage_id, e.start) for e in sources}
    return sources + tuple(e for e in occurrences(text, passages) if (e.passage_id, e.start) not in positions)


def answer_events(
    selected: Sequence[t.Candidate],
    candidates: Sequence[t.Candidate],
    pinned: int,
    passages: Sequence[t.RetrievedPassage],
    seconds: float,
    first: int = 1,
    earlier: Sequence[str] = (),
    prompt: str = "",
) -> Iterator[t.StepFinished]:
    """One StepFinished for each selected answer.  The first one has all candidates and the total seconds.

    `pinned`: how many of them a person set; `first`: number of the first step; `earlier`: earlier answers; `prompt`: of each step.
    """
    previous = list(earlier)
    for i, c in enumerate(selected):
        step_candidates = tuple(candidates[: t.STEP_CANDIDATES]) if i == 0 else (c,)
        step = t.Step(first + i, tuple(previous), prompt, step_candidates, c, 0.0, seconds if i == 0 else 0.0)
        yield t.StepFinished(
            step, t.Answer(c.text, c.probability, evidence_of(c.text, [c.evidence], passages), first + i, i < pinned)
        )
        previous.append(c.text)
