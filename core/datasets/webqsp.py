"""WebQSP as questions with textual answers.

Sources: Yih et al. 2016 (the knowledge-base questions: `Questions` with `Parses` and `Answers`); Min et al. 2021, section 4 (the recast as
text: an answer is the name of its entity, or its value).  A question's parses are alternative annotations, as in the official evaluation:
the best counts.  Recasts that are passed around as a list of rows are read by core.datasets.rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.json_io import FieldReader
from core.types import Annotation, QAPair, ReferenceQuestion


def load(path: Path) -> list[ReferenceQuestion]:
    """Loads a file. Questions without any answer are left out, as Min et al. do. Raises FormatError with question and
    field."""
    value = json_io.read(path)
    if not isinstance(value, dict) or not isinstance(value.get("Questions"), list):
        raise FormatError("expected an object with 'Questions' (WebQSP)", file=path.name)
    questions: dict[str, ReferenceQuestion] = {}
    for i, row in enumerate(value["Questions"]):
        question = _question(path, i, row)
        if question is None:
            continue
        if question.id in questions:
            raise FormatError(f"the id '{question.id[:80]}' occurs twice", file=path.name, field=f"Questions[{i}].QuestionId")
        questions[question.id] = question
    if not questions:
        raise FormatError("contains no question with an answer", file=path.name)
    return list(questions.values())


def _question(path: Path, i: int, row: Any) -> ReferenceQuestion | None:
    fields = FieldReader(path.name, parent=f"Questions[{i}].")
    row = fields.items([row], "row", dict)[0]
    name = fields.id(row.get("QuestionId"), "QuestionId")
    text = fields.text(row.get("RawQuestion") or row.get("ProcessedQuestion"), "RawQuestion")
    notes = []
    for j, parse in enumerate(fields.items(row.get("Parses"), "Parses", dict, empty=True)):
        answers = fields.items(parse.get("Answers"), f"Parses[{j}].Answers", dict, empty=True)
        texts = dict.fromkeys(_text(fields, a, f"Parses[{j}].Answers[{k}]") for k, a in enumerate(answers))
        if texts:
            pairs = tuple(QAPair(text if len(texts) == 1 else "", (answer,)) for answer in texts)
            notes.append(Annotation("single" if len(pairs) == 1 else "multiple", pairs))
    unique = tuple(dict.fromkeys(notes))
    return ReferenceQuestion(name, text, unique, None, {"source": "webqsp"}) if unique else None


def _text(fields: FieldReader, answer: Mapping[str, Any], field: str) -> str:
    """The name of an entity, or the value of anything else."""
    kind = answer.get("AnswerType")
    if kind not in ("Entity", "Value"):
        raise fields.error(f"the answer type {kind!r:.40} is unknown; expected Entity or Value", f"{field}.AnswerType")
    text = answer.get("EntityName") or answer.get("AnswerArgument") if kind == "Entity" else answer.get("AnswerArgument")
    return fields.text(text, f"{field}.AnswerArgument")
