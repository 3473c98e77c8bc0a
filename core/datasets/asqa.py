"""ASQA as published: one JSON object, `train` and `dev`, that maps AmbigNQ ids to `ambiguous_question`, `qa_pairs` and
`annotations`.

Source: Stelmakh et al. 2022.  The long answers that people wrote go to `extra["long_answers"]`, for STR-EM and ROUGE-L.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core import json_io
from core.errors import FormatError
from core.json_io import FieldReader
from core.types import Annotation, QAPair, ReferenceQuestion

SPLITS = ("train", "dev")


def load(path: Path) -> list[ReferenceQuestion]:
    """The questions of all splits in the file, each with its split in `extra`.  Raises FormatError with question and field."""
    value = json_io.read(path)
    splits = [name for name in SPLITS if isinstance(value, dict) and isinstance(value.get(name), dict)]
    if not splits:
        raise FormatError("expected an object with 'train' or 'dev' (ASQA)", file=path.name)
    questions = [_question(path, split, name, row) for split in splits for name, row in value[split].items()]
    if not questions:
        raise FormatError("contains no question", file=path.name)
    return questions


def _question(path: Path, split: str, name: str, row: Any) -> ReferenceQuestion:
    fields = FieldReader(path.name, question=name, parent=f"{split}.{name}.")
    row = fields.items([row], "row", dict)[0]
    question = fields.text(row.get("ambiguous_question"), "ambiguous_question")
    pairs = []
    for i, body in enumerate(fields.items(row.get("qa_pairs"), "qa_pairs", dict)):
        clarified = fields.text(body.get("question"), f"qa_pairs[{i}].question")
        answers = fields.texts(body.get("short_answers"), f"qa_pairs[{i}].short_answers")
        pairs.append(QAPair(clarified, tuple(dict.fromkeys(answers))))
    notes = row.get("annotations")
    texts = [note.get("long_answer") for note in notes if isinstance(note, dict)] if isinstance(notes, list) else []
    long_answers = [text for text in texts if isinstance(text, str) and text.strip()]
    extra = {"source": "asqa", "split": split, **({"long_answers": long_answers} if long_answers else {})}
    return ReferenceQuestion(
        name, question, (Annotation("multiple" if len(pairs) > 1 else "single", tuple(pairs)),), None, extra
    )
