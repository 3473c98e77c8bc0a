"""People's own answer sets, in AmbigNQ's form: their check and their JSON."""

from __future__ import annotations

from typing import Any, get_args

from core.errors import FormatError, InputError
from core.trace import to_json
from core.types import Annotation, AnnotationType, QAPair
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


def annotation_from_json(body: Any) -> Annotation:
    """The inverse of `to_json(annotation)`.  Raises FormatError for another layout."""

    def texts(value: Any, what: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise FormatError("expected a list of texts", field=what)
        return tuple(value)

    if (
        not isinstance(body, dict)
        or body.get("type") not in get_args(AnnotationType)
        or not isinstance(body.get("pairs"), list)
    ):
        raise FormatError(f"expected an annotation: a type ({', '.join(get_args(AnnotationType))}) and a list of pairs")
    pairs = []
    for i, pair in enumerate(body["pairs"]):
        if not isinstance(pair, dict) or not isinstance(pair.get("question"), str):
            raise FormatError("expected a question and its answers", field=f"pairs[{i}]")
        answers = texts(pair.get("answers"), f"pairs[{i}].answers")
        pairs.append(QAPair(pair["question"], answers, texts(pair.get("passage_ids", []), f"pairs[{i}].passage_ids")))
    return Annotation(body["type"], tuple(pairs))
