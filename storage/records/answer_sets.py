"""The check of people's own answer sets, in AmbigNQ's form."""

from __future__ import annotations

from typing import get_args

from core.errors import InputError
from core.trace import to_json
from core.types import Annotation, AnnotationType
from storage.records.checks import plain_problem

MAX_PAIRS = 200


def check_annotation(annotation: Annotation, *, complete: bool) -> None:
    """Raises InputError for text that cannot be stored and, where it is `complete`, for what AmbigNQ's union type does
    not allow.
    """
    problem = plain_problem(to_json(annotation))
    if problem:
        raise InputError(f"the annotation cannot be stored: {problem}")
    if annotation.type not in get_args(AnnotationType):
        raise InputError(f"the annotation's type is {annotation.type!r}; use one of {', '.join(get_args(AnnotationType))}")
    count = len(annotation.pairs)
    if count > MAX_PAIRS:
        raise InputError(f"the annotation has {count} pairs; at most {MAX_PAIRS} are allowed")
    if not complete:
        return
    wrong = {"none": count != 0, "single": count != 1, "multiple": count < 2}[annotation.type]
    if wrong:
        needs = {"none": "no pair", "single": "one pair", "multiple": "two pairs or more"}[annotation.type]
        raise InputError(f"an annotation of type '{annotation.type}' has {needs}; this one has {count}")
    for number, pair in enumerate(annotation.pairs, 1):
        if not pair.answers or not all(alias.strip() for alias in pair.answers):
            raise InputError(f"pair {number} has no answer, or an empty one")
        if annotation.type == "multiple" and not pair.question.strip():
            raise InputError(f"pair {number} has no question: say which question has only the answer '{pair.answers[0][:80]}'")
