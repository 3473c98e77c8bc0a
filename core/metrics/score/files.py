"""Reads the two files of `score`: references (AmbigNQ light) and predictions.  Errors name file, question and field.

Layouts (AmbigQA's script): references `[{"id", "question", "annotations": [...]}]`; predictions `{id: [answer, ...]}` or
`{id: [{"question", "answer"}, ...]}`, one kind throughout.  Unlike for that script, an empty list, or no entry for a reference, says that
there is no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import FormatError
from core.json_io import FieldReader
from core.types import Annotation, QAPair, ReferenceQuestion


@dataclass(frozen=True, slots=True)
class Predicted:
    """A file's prediction for one question.  `questions`: one for each answer, or None if the file has answers only.
    `is_missing`: the file has no entry for the question."""

    answers: tuple[str, ...]
    questions: tuple[str, ...] | None = None
    is_missing: bool = False


def parse_references(value: Any, file: object = None, *, none_allowed: bool = False) -> list[ReferenceQuestion]:
    """AmbigNQ light.  `none_allowed`: accept `noAnswer` annotations.  Further fields go to `extra`, a pair's `passages` to its
    `passage_ids`.  Raises FormatError."""
    if not isinstance(value, list):
        raise FormatError("expected a list of questions (AmbigNQ light)", file=file)
    if not value:
        raise FormatError("contains no question", file=file)
    references: dict[str, ReferenceQuestion] = {}
    for i, row in enumerate(value):
        question = parse_reference(row, file, f"[{i}]", none_allowed=none_allowed)
        if question.id in references:
            raise FieldReader(file, question=question.id).error("occurs twice; ids must differ", "id")
        references[question.id] = question
    return list(references.values())


def parse_reference(row: Any, file: object = None, field: str = "", *, none_allowed: bool = False) -> ReferenceQuestion:
    """One question of such a list; `field` is its place.  Raises FormatError."""
    if not isinstance(row, dict):
        raise FormatError(f"expected an object, found {row!r:.80}", file=file, field=field or None)
    name = FieldReader(file).id(row.get("id"), f"{field}.id".lstrip("."))
    place = FieldReader(file, question=name)
    question = place.text(row.get("question"), "question")
    annotations = tuple(
        _annotation(body, place, f"annotations[{j}]", question, none_allowed)
        for j, body in enumerate(place.items(row.get("annotations"), "annotations"))
        if not (
            isinstance(body, dict) and body.get("counts") is False
        )  # Ambiscope's export of all answers has late and returned ones too
    )
    if not annotations:
        raise place.error("none of its annotations counts", "annotations")
    extra = {k: v for k, v in row.items() if k not in ("id", "question", "annotations")}
    return ReferenceQuestion(name, question, annotations, None, extra)


def _annotation(body: Any, place: FieldReader, field: str, prompt: str, none_allowed: bool) -> Annotation:
    kind = body.get("type") if isinstance(body, dict) else None
    if kind == "singleAnswer":
        pair = QAPair(prompt, place.aliases(body.get("answer"), f"{field}.answer"), _passages(body, place, field))
        return Annotation("single", (pair,))
    if kind == "multipleQAs":
        pairs = []
        for i, row in enumerate(place.items(body.get("qaPairs"), f"{field}.qaPairs", dict)):
            pair_field = f"{field}.qaPairs[{i}]"
            question = place.text(row.get("question"), f"{pair_field}.question")
            if not question.strip(" |"):
                raise place.error("expected text, found none", f"{pair_field}.question")
            pairs.append(
                QAPair(question, place.aliases(row.get("answer"), f"{pair_field}.answer"), _passages(row, place, pair_field))
            )
            if pairs[-1] in pairs[:-1]:
                raise place.error(
                    "the same question with the same answers occurs twice in one annotation; keep one", pair_field
                )
        return Annotation("multiple", tuple(pairs))
    if kind == "noAnswer" and none_allowed:
        return Annotation("none")
    types = "singleAnswer, multipleQAs" + (" or noAnswer" if none_allowed else "")
    raise place.error(f"expected an object with type {types}, found {kind or body!r:.80}", f"{field}.type")


def _passages(row: Mapping[str, Any], place: FieldReader, field: str) -> tuple[str, ...]:
    return place.texts(row["passages"], f"{field}.passages") if "passages" in row else ()


def parse_predictions(value: Any, ids: Collection[str], file: object = None) -> dict[str, Predicted]:
    """The predictions for each of `ids`.  Raises FormatError, also for other ids and if none of them has a prediction."""
    if not isinstance(value, dict):
        raise FormatError("expected one object of question ids with lists of answers", file=file)
    expected = set(ids)
    if extra := [name for name in value if name not in expected]:
        raise FormatError(f"no reference has the id {_listed(extra)}; remove it", file=file, field=extra[0])
    if not value:
        raise FormatError("contains no prediction", file=file)
    predictions: dict[str, Predicted] = {}
    kinds: dict[bool, str] = {}  # with questions or without -> the first question of that kind
    for name in value:
        place = FieldReader(file, question=name)
        rows = place.items(value[name], name, empty=True)
        for i, row in enumerate(rows):
            kind = isinstance(row, dict)
            if kinds.setdefault(kind, name) and len(kinds) == 2:
                message = f"answers alone and answers with questions are mixed (see question '{kinds[not kind]}')"
                raise place.error(message, f"{name}[{i}]")
        if rows and isinstance(rows[0], dict):
            answers, questions = (
                tuple(place.text(row.get(key), f"{name}[{i}].{key}") for i, row in enumerate(rows))
                for key in ("answer", "question")
            )
            predictions[name] = Predicted(answers, questions)
        else:
            predictions[name] = Predicted(place.texts(rows, name, empty=True))
    for name in ids:
        predicted = predictions.setdefault(name, Predicted((), is_missing=True))
        if not predicted.answers and True in kinds:  # the others have questions
            predictions[name] = replace(predicted, questions=())
    return predictions


def _listed(names: list[str]) -> str:
    """The first three names, quoted, and the number of the others."""
    text = ", ".join(f"'{n[:60]}'" for n in names[:3])
    return f"{text} and {len(names) - 3} more" if len(names) > 3 else text
