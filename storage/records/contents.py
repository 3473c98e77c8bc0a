"""Converts people's submissions to plain JSON and back: the bodies of `submission`, gold references, guideline examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from core.metrics.agreement.answer_sets import answer_set, set_f1
from core.text import answer_key, answer_keys
from core.trace import from_json
from core.types import Annotation
from storage.records.annotation import (
    Content,
    GenerationWork,
    JudgingWork,
    ValidationWork,
)

T = TypeVar("T")
KINDS: dict[str, type[Any]] = {"generation": GenerationWork, "validation": ValidationWork, "judging": JudgingWork}


def content_from_json(body: Mapping[str, Any], stage: str) -> Content:
    """The inverse of core.trace.to_json.  Raises FormatError for another layout."""
    return cast(Content, from_json(KINDS[stage], body))


def gold_from_json(body: Mapping[str, Any]) -> tuple[Annotation, ...]:
    """The reference of a gold item: answer sets."""
    return all_from_json(Annotation, body["annotations"])


def gold_score(gold: Sequence[Annotation], content: Content, answers: Mapping[tuple[str, int], str]) -> float:
    """A score in 0..1: the best answer F1 against the reference annotations (two empty sets: 1), or the share of judged answers
    that were labelled correct exactly if a reference has them, without duplicates.  `answers`: the text by (prediction id,
    position).
    """
    if isinstance(content, JudgingWork):
        keys = answer_keys(alias for reference in gold for pair in reference.pairs for alias in pair.answers)
        judged = [
            (a.verdict == "correct", answers[a.prediction_id, a.position]) for a in content.answers if a.verdict != "duplicate"
        ]
        return sum(yes == (answer_key(text) in keys) for yes, text in judged) / len(judged) if judged else 1.0
    submitted = answer_set(content.annotation)
    return max((set_f1(answer_set(reference), submitted) for reference in gold), default=1.0)


@dataclass(frozen=True, slots=True)
class Corrections:
    """The answers that were struck (by position) from and added to a prediction before it became an item.  `count`: the number
    of its answers."""

    prediction: str
    count: int
    struck: tuple[int, ...]
    added: tuple[str, ...]


def all_from_json(kind: type[T], body: Sequence[Any]) -> tuple[T, ...]:
    """The inverse of core.trace.to_json of several records.  Raises FormatError for another layout."""
    return tuple(from_json(kind, item) for item in body)
