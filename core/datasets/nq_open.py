"""NQ-open: JSON lines of `question` and `answer`, the aliases of one answer (Lee et al. 2019)."""

from __future__ import annotations

from pathlib import Path

from core.datasets.lines import Line, load_lines
from core.types import Annotation, QAPair, ReferenceQuestion


def load(path: Path) -> list[ReferenceQuestion]:
    """Each question has one annotation with a single answer.  Raises FormatError with the line."""
    return load_lines(path, _question)


def _question(line: Line, name: str) -> ReferenceQuestion:
    row = line.row
    question = line.text(row, "question", "question")
    annotation = Annotation("single", (QAPair(question, line.aliases(row.get("answer"), "answer")),))
    extra = {k: v for k, v in row.items() if k not in ("id", "question", "answer")}
    return ReferenceQuestion(name, question, (annotation,), None, extra)
