"""The one gate for an annotation's content: whether it can be stored, whether it is complete, and whether it meets its stage's
rules.

Submissions, imports and dumps call `checked`; references of gold items and examples, which are annotations only, its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from core.annotating import checks
from core.annotating.generation import SuggestionAction
from core.annotating.labels import Label, Preference, QuestionLabel
from core.errors import InputError
from core.text import answer_key, listed
from core.trace import to_json
from core.types import Annotation, AnnotationType
from storage.records.annotation import Content, GenerationWork, JudgingWork, SourcesChangedError, ValidationWork
from storage.records.checks import MAX_NOTE_CHARS, check_choice, check_text, plain_problem
from storage.records.contents import KINDS
from storage.records.enumerations import WorkStage

MAX_MISSING = 200
MAX_PAIRS = 200
INCOMPLETE = ("few-pairs", "many-pairs", "empty-answer", "empty-question")  # of core.annotating.checks: in files, too


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The facts that the rules of a stage need about the item and the work on it."""

    prompt: str
    thresholds: Mapping[str, float]  # of the project, over storage.records.projects.THRESHOLDS
    seconds: float = 0.0  # spent on it, with those of this submission
    opened_count: int = 0  # passages
    reference_date: date | None = None
    error_labels: frozenset[str] = frozenset()
    linked: Mapping[tuple[str, int], str | None] | None = None  # to judge: (prediction, position) -> its disambiguated question
    sides: tuple[str, ...] = ()  # the predictions in the order of the screen
    sources: tuple[tuple[str, int], ...] = ()  # to validate: person and version
    sources_are_complete: bool = True


def checked(content: Content, stage: WorkStage, circumstances: Circumstances | None = None) -> Content:
    """The content as it is stored: with doubts, sources, and the prediction that is preferred.  Without circumstances (it is read from a file)
    as it is, after the check whether it can be stored.

    Raises InputError for the content of another stage, wrong choices, what cannot be stored or is not complete, and what the rules of the
    stage refuse; SourcesChangedError where what is validated is not what is there.
    """
    if not isinstance(content, KINDS[stage]):
        raise InputError(f"the stage {stage} takes {KINDS[stage].__name__}, not {type(content).__name__}")
    if problem := plain_problem(to_json(content)):
        raise InputError(f"this cannot be stored: {problem}")
    check_text(content.note, "the note", limit=MAX_NOTE_CHARS)
    if isinstance(content, JudgingWork):
        _check_judging(content)
        return content if circumstances is None else _judged(content, circumstances)
    check_annotation(content.annotation, complete=True)
    if isinstance(content, GenerationWork):
        _check_distinct([(s.prediction_id, s.position) for s in content.suggestions], "a suggestion")
        for use in content.suggestions:
            check_choice(use.action, SuggestionAction, "a suggestion")
    return content if circumstances is None else _annotated(content, circumstances)


def check_annotation(annotation: Annotation, *, complete: bool) -> None:
    """Raises InputError for text that can't be stored and, if it is to be `complete`, for anything that AmbigNQ's union type
    doesn't allow."""
    if problem := plain_problem(to_json(annotation)):
        raise InputError(f"the annotation cannot be stored: {problem}")
    check_choice(annotation.type, AnnotationType, "the annotation's type")
    if len(annotation.pairs) > MAX_PAIRS:
        raise InputError(f"the annotation has {len(annotation.pairs)} pairs; at most {MAX_PAIRS} are allowed")
    if not complete:
        return
    for finding in checks.errors(annotation, "", opened_count=None):
        if finding.code in INCOMPLETE:
            raise InputError(str(finding))
    for number, pair in enumerate(annotation.pairs, 1):
        if not all(alias.strip() for alias in pair.answers):
            raise InputError(f"pair {number} has an empty answer")


def check_gold(gold: Sequence[Annotation]) -> None:
    """Raises InputError for annotations that can't be stored, or if there are none."""
    for annotation in gold:
        check_annotation(annotation, complete=True)
    if not gold:
        raise InputError("a gold item needs a reference: the right answers")


def _check_distinct(keys: Sequence[Any], noun: str) -> None:
    if len(set(keys)) != len(keys):
        raise InputError(f"{noun} occurs twice")


def _check_judging(content: JudgingWork) -> None:
    _check_distinct([(a.prediction_id, a.position) for a in content.answers], "an answer")
    for answer in content.answers:
        check_choice(answer.verdict, Label, "a label")
        if answer.question is not None:
            check_choice(answer.question, QuestionLabel, "the label of a disambiguated question")
        check_text(answer.note, "a note", limit=MAX_NOTE_CHARS)
        _check_distinct(answer.errors, "an error label")
    if content.preference is not None:
        check_choice(content.preference, Preference, "the preference")
    if len(content.missing) > MAX_MISSING:
        raise InputError(f"{len(content.missing)} missing answers; at most {MAX_MISSING} are allowed")
    for missing in content.missing:
        if not missing.text.strip() or not all(alias.strip() for alias in missing.aliases):
            raise InputError("a missing answer is empty")
    _check_distinct([answer_key(m.text) for m in content.missing], "a missing answer")


def _judged(content: JudgingWork, known: Circumstances) -> JudgingWork:
    """Checks that each answer of each linked prediction has a label, and each disambiguated question too, and fills in the
    preferred prediction."""
    expected = known.linked or {}
    judged = {(a.prediction_id, a.position): a for a in content.answers}
    if foreign := sorted({label for a in content.answers for label in a.errors} - known.error_labels):
        raise InputError(
            f"'{foreign[0][:80]}' is no error label of the project; it has {', '.join(sorted(known.error_labels)) or 'none'}"
        )
    if strange := sorted(set(judged) - set(expected)):
        raise InputError(f"answer {strange[0][1] + 1} of prediction {strange[0][0][:40]} is not part of this item")
    if missing := sorted(set(expected) - set(judged)):
        raise InputError(f"{len(missing)} of {listed(len(expected), 'answer')} without a label")
    for key, clarified in expected.items():
        if (judged[key].question is None) != (clarified is None):
            problem = (
                "has no disambiguated question to judge" if clarified is None else "has a disambiguated question: judge it too"
            )
            raise InputError(f"answer {key[1] + 1} {problem}")
    if content.preference is not None and len(known.sides) < 2:
        raise InputError("there is one answer set only: no preference between two")
    preferred = known.sides["ab".index(content.preference)] if content.preference in ("a", "b") else ""
    return replace(content, preferred=preferred)


def _annotated(content: GenerationWork | ValidationWork, known: Circumstances) -> Content:
    """Checks completeness by the project's rules, and adds doubts and sources.  Raises InputError, SourcesChangedError."""
    annotation, limits = content.annotation, known.thresholds
    writes = isinstance(content, GenerationWork)  # validators need not read
    findings = checks.errors(
        annotation, known.prompt, opened_count=known.opened_count if writes else None, must_read=int(limits["must_read"])
    )
    wrong = [str(finding) for finding in findings]
    if writes and annotation.type != "multiple" and known.seconds < limits["min_seconds_no_pairs"]:
        wrong.append(f"look for other answers a little longer: {limits['min_seconds_no_pairs']:.0f} s at least")
    if wrong:
        raise InputError("; ".join(wrong))
    doubts = checks.doubts(
        annotation, known.prompt, reference_date=known.reference_date, alias_words=int(limits["alias_words"])
    )
    warnings = tuple(map(str, doubts))
    if isinstance(content, GenerationWork):
        return replace(content, warnings=warnings)
    if not known.sources_are_complete or (content.sources and content.sources != known.sources):
        raise SourcesChangedError("an annotation was changed or sent back meanwhile: load them again")
    return replace(content, warnings=warnings, sources=known.sources)
