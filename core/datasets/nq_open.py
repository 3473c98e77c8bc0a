"""NQ-open: JSON lines of `question` and `answer`, the aliases of one answer (Lee et al. 2019)."""

from __future__ import annotations

from pathlib import Path

from core.datasets.lines import Line
from core.errors import FormatError
from core.metrics import strict_json
from core.types import Annotation, QAPair, ReferenceQuestion


def load(path: Path) -> list[ReferenceQuestion]:
    """Each question has one annotation with a single answer.  Raises FormatError with the line."""
    taken: dict[str, int] = {}
    found = []
    for number, row in strict_json.read_lines(path):
        line = Line(path, number, row)
        name = line.id(taken)
        taken[name] = number
        question = line.text(row, "question", "question")
        annotation = Annotation("single", (QAPair(question, line.texts(row.get("answer"), "answer")),))
        extra = {k: v for k, v in row.items() if k not in ("id", "question", "answer")}
        found.append(ReferenceQuestion(name, question, (annotation,), None, extra))
    if not found:
        raise FormatError("holds no question", file=path.name)
    return found
