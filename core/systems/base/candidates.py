"""Shared by systems with a per-passage reader: candidates, the choice among them, and the events of an answer set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from core import types as t
from core.disambiguation.clarifiers import Clarifier
from core.disambiguation.round_trip import Read
from core.errors import CancelledError, InputError
from core.systems.base.stopping import CALIBRATED, OF_READERS, Place, Selection
from core.text import answer_words, occurrences

if TYPE_CHECKING:
    from core.models.span.reader import PassageReader, Readout

Scoring = Literal["passage", "dpr"]
SHOWN = 8  # candidates in the first step of a trace
STOPPING: dict[str, Any] = {"stop": OF_READERS, "calibration": CALIBRATED}  # options of a system that reads once


def read_with(reader: PassageReader) -> Read:
    """The reader for clarification: the best span of each passage, or None if abstaining is likelier."""

    def read(pairs: Sequence[tuple[str, t.Passage]]) -> list[tuple[str | None, float]]:
        out: list[tuple[str | None, float]] = []
        for readout in reader.read_pairs(pairs, candidates=1):
            best = readout.best
            out.append((best.text, best.probability) if best else (None, readout.abstain_probability))
        return out

    return read


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


def choose(candidates: Sequence[t.Candidate], question: t.Question, threshold: float, most: int) -> list[t.Candidate]:
    """Pinned answers, then the candidates whose probability reaches the threshold: none that is banned, none that is part of another."""
    return Selection(threshold).keep(candidates, question, most)[0]


def selection(options: Mapping[str, Any], checkpoint: str, place: Place, threshold: float) -> Selection:
    """How a system that reads once selects answers, from its options `stop` and `calibration`.

    `checkpoint`: name of the weights beside which its calibration lies.  Raises InputError if the rule needs a missing calibration,
    CheckpointError.
    """
    stop = options["stop"]
    return Selection(threshold, stop, place.find(checkpoint, stop, options["calibration"]), place)


def answer_events(
    kept: Sequence[t.Candidate],
    candidates: Sequence[t.Candidate],
    pinned: int,
    passages: Sequence[t.RetrievedPassage],
    seconds: float,
    first: int = 1,
    before: Sequence[str] = (),
) -> Iterator[t.StepFinished]:
    """One StepFinished for each kept answer; the first has all candidates and the total seconds.

    `pinned`: how many of them a person set; `first`: number of the first step; `before`: earlier answers.
    """
    previous = list(before)
    for i, c in enumerate(kept):
        own = (c.evidence,) if c.evidence else ()
        rest = tuple(
            e for e in occurrences(c.text, passages) if not own or (e.passage_id, e.start) != (own[0].passage_id, own[0].start)
        )
        shown = tuple(candidates[:SHOWN]) if i == 0 else (c,)
        step = t.Step(first + i, tuple(previous), "", shown, c, 0.0, seconds if i == 0 else 0.0)
        yield t.StepFinished(step, t.Answer(c.text, c.probability, own + rest, first + i, i < pinned))
        previous.append(c.text)


def clarified(
    question: str,
    answers: Sequence[t.Answer],
    passages: Sequence[t.RetrievedPassage],
    clarifier: Clarifier,
    cancelled: Callable[[], bool],
) -> Iterator[t.QuestionClarified]:
    """A QuestionClarified for each answer.  Raises CancelledError when a person stops the run."""
    begun = time.perf_counter()
    for clarification in clarifier(question, answers, [p.passage for p in passages]):
        yield t.QuestionClarified(clarification, time.perf_counter() - begun)
        begun = time.perf_counter()
        if cancelled():
            raise CancelledError("the run was stopped")


def check_share(name: str, value: float) -> float:
    """Checks that an option is a probability.  Raises InputError when it is outside 0..1."""
    if not 0 <= value <= 1:
        raise InputError(f"the option {name} is {value:g}; it must be between 0 and 1")
    return value


def check_count(name: str, value: float, most: int) -> int:
    """Checks that an option is a whole number of at least 1.  Raises InputError."""
    if value != int(value) or not 1 <= value <= most:
        raise InputError(f"the option {name} is {value:g}; it must be a whole number from 1 to {most}")
    return int(value)
