"""The questions of a file that were not trained on, compared by id and by words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import datasets, json_io
from core.disk import plain_or_gz
from core.errors import FormatError
from core.json_io import dumps
from core.text import question_key


@dataclass(frozen=True, slots=True)
class Questions:
    """`rows`: rows of the file, each with its id.  `lines`: the file has one row per line (JSON Lines), not one list."""

    rows: tuple[dict[str, Any], ...]
    left_out: int
    lines: bool

    def text(self) -> str:
        """A question file of these rows, in the layout of the original."""
        if self.lines:
            return "".join(dumps(row) + "\n" for row in self.rows)
        return "[\n" + ",\n".join(dumps(row) for row in self.rows) + "\n]\n"


def trained_on(training: Path, replay: Path | None) -> tuple[set[str], set[str]]:
    """Ids and keys of the questions of a training file (JSONL) and of a folder with questions.json, disambiguated ones too."""
    ids: set[str] = set()
    keys: set[str] = set()
    with training.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            ids.add(row["id"])
            keys.add(question_key(row["question"]))
    if replay is not None:
        for question in datasets.load(plain_or_gz(replay / "questions.json")):
            ids.add(question.id)
            keys.add(question_key(question.question))
            keys |= {question_key(p.question) for a in question.annotations for p in a.pairs if p.question}
    return ids, keys


def questions_left(path: Path, training: Path, replay: Path | None) -> Questions:
    """The questions of `path` that are neither in the training file nor in the replay folder.

    Raises FormatError where the file is no question file.
    """
    loaded = datasets.load(path)
    lines = not json_io.first_text(path).startswith("[")
    rows = [row for _, row in json_io.read_lines(path)] if lines else list(json_io.read(path))
    if len(rows) != len(loaded):
        raise FormatError(f"{len(rows)} rows and {len(loaded)} questions: mend the file", file=path)
    ids, keys = trained_on(training, replay)
    remaining = [
        {**row, "id": question.id}  # a row without an id is named by its line, which is another in the new file
        for row, question in zip(rows, loaded, strict=True)
        if question.id not in ids and question_key(question.question) not in keys
    ]
    return Questions(tuple(remaining), len(rows) - len(remaining), lines)
