"""The input of a metric for one question, and the mean of a metric's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.metrics.judged import Grounding
from core.types import Annotation

Value = float | None  # None: undefined for this question, and left out of the mean


@dataclass(frozen=True, slots=True)
class Readings:
    """A reader's answers to the references' disambiguated questions, read from the system's answers as one text, with the
    correct short answers.  `comparable`: the reader is like ASQA's."""

    answers: tuple[tuple[str, tuple[str, ...]], ...]
    comparable: bool


@dataclass(frozen=True, slots=True)
class Example:
    """One question with its references and a system's output.

    `questions[i]` is the disambiguated question of `answers[i]`; None if the system makes none.  `passed[i]`: its round trip
    passed, None if the answer has none.  `passages`: texts of the retrieved passages, the best first; None if nothing was
    retrieved.  `k`: how many were asked for.  `grounding`: a judge's judgments of the interpretations; None without a judge.
    `long_answers`: texts written by people (ASQA); `readings`: a reader's answers from the system's text.  `probabilities[i]`: of `answers[i]`, None if it is not a number.
    """

    prompt: str
    annotations: tuple[Annotation, ...]
    answers: tuple[str, ...]
    questions: tuple[str, ...] | None = None
    passed: tuple[bool | None, ...] | None = None
    passages: tuple[str, ...] | None = None
    k: int | None = None
    wrong_answers: tuple[str, ...] | None = None
    grounding: Grounding | None = None
    long_answers: tuple[str, ...] | None = None
    probabilities: tuple[float | None, ...] | None = None
    readings: Readings | None = None
    text: str = ""  # the answers as one text, where the system wrote it

    @property
    def answer_sets(self) -> list[tuple[tuple[str, ...], ...]]:
        """The alias lists of each annotation that has answers."""
        return [tuple(p.answers for p in a.pairs) for a in self.annotations if a.type != "none" and a.pairs]


def mean(values: Sequence[Value], weights: Sequence[float] | None = None) -> Value:
    """The mean of the defined values, weighted if there are weights; None if no value is defined or none has weight.

    >>> mean([1.0, None, 0.0]), mean([1.0, 0.5, None], [1, 3, 2]), mean([None])
    (0.5, 0.625, None)
    """
    pairs = [(v, w) for v, w in zip(values, weights or [1.0] * len(values), strict=True) if v is not None]
    total = sum(w for _, w in pairs)
    return sum(v * w for v, w in pairs) / total if total else None
