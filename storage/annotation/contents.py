"""What people submit, as plain JSON and back: the bodies of `submission`, gold references, guideline examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from core.annotating.labels import Label, Preference, QuestionLabel
from core.errors import InputError
from core.metrics.agreement.answer_sets import answer_set, set_f1
from core.text import answer_key, answer_keys
from core.trace import from_json, to_json
from core.types import Annotation
from storage.records.annotation import (
    Content,
    GenerationWork,
    JudgingWork,
    ValidationWork,
)
from storage.records.answer_sets import check_annotation
from storage.records.checks import MAX_NOTE_CHARS, check_choice, check_text, plain_problem
from storage.records.enumerations import SuggestionAction, WorkStage

MAX_MISSING = 200
T = TypeVar("T")
_KINDS: dict[str, type[Any]] = {"generation": GenerationWork, "validation": ValidationWork, "judging": JudgingWork}


def check_content(content: Content, stage: WorkStage) -> None:
    """Raises InputError for the content of another stage, wrong choices, and what cannot be stored or is not complete."""
    if not isinstance(content, _KINDS[stage]):
        raise InputError(f"the stage {stage} takes {_KINDS[stage].__name__}, not {type(content).__name__}")
    if problem := plain_problem(to_json(content)):
        raise InputError(f"this cannot be stored: {problem}")
    check_text(content.note, "the note", limit=MAX_NOTE_CHARS)
    if isinstance(content, JudgingWork):
        _check_judging(content)
        return
    check_annotation(content.annotation, complete=True)
    if isinstance(content, GenerationWork):
        _distinct([(s.prediction_id, s.position) for s in content.suggestions], "a suggestion")
        for use in content.suggestions:
            check_choice(use.action, SuggestionAction, "a suggestion")


def _distinct(keys: Sequence[Any], noun: str) -> None:
    if len(set(keys)) != len(keys):
        raise InputError(f"{noun} occurs twice")


def _check_judging(content: JudgingWork) -> None:
    _distinct([(a.prediction_id, a.position) for a in content.answers], "an answer")
    for answer in content.answers:
        check_choice(answer.verdict, Label, "a label")
        if answer.question is not None:
            check_choice(answer.question, QuestionLabel, "the label of a disambiguated question")
        check_text(answer.note, "a note", limit=MAX_NOTE_CHARS)
        _distinct(answer.errors, "an error label")
    if content.preference is not None:
        check_choice(content.preference, Preference, "the preference")
    if len(content.missing) > MAX_MISSING:
        raise InputError(f"{len(content.missing)} missing answers; at most {MAX_MISSING} are allowed")
    for missing in content.missing:
        if not missing.text.strip() or not all(alias.strip() for alias in missing.aliases):
            raise InputError("a missing answer is empty")
    keys = [answer_key(m.text) for m in content.missing]
    _distinct(keys, "a missing answer")


def content_from_json(body: Mapping[str, Any], stage: str) -> Content:
    """The inverse of core.trace.to_json.  Raises FormatError for another layout."""
    return cast(Content, from_json(_KINDS[stage], body))


def gold_from_json(body: Mapping[str, Any]) -> tuple[Annotation, ...]:
    """The reference of a gold item: answer sets."""
    return all_from_json(Annotation, body["annotations"])


def check_gold(gold: Sequence[Annotation]) -> None:
    """Raises InputError for annotations that cannot be stored, and where there are none."""
    for annotation in gold:
        check_annotation(annotation, complete=True)
    if not gold:
        raise InputError("a gold item needs a reference: the right answers")


def gold_score(gold: Sequence[Annotation], content: Content, answers: Mapping[tuple[str, int], str]) -> float:
    """In 0..1: the best answer F1 against the reference annotations (two empty sets: 1), or the share of judged answers that were
    labelled correct where a reference has them and only there, without duplicates.  `answers`: the text by (prediction id, position).
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
    """What was struck (by position) and added to a prediction's answers before it became an item.  `count`: of those answers."""

    prediction: str
    count: int
    struck: tuple[int, ...]
    added: tuple[str, ...]


def all_from_json(kind: type[T], body: Sequence[Any]) -> tuple[T, ...]:
    """The inverse of core.trace.to_json of several records.  Raises FormatError for another layout."""
    return tuple(from_json(kind, item) for item in body)
