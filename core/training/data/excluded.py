"""Questions that weights are evaluated on, which no training row may ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from core import json_io
from core.errors import FormatError
from core.text import normalize_answer

Example = TypeVar("Example")


@dataclass(frozen=True)
class Excluded:
    """Normalised questions."""

    questions: frozenset[str]

    def without(self, examples: Sequence[Example]) -> list[Example]:
        """The examples (with `question`, and disambiguated questions in `extra["questions"]`) that ask none of the questions."""
        if not self.questions:
            return list(examples)
        return [e for e in examples if self.questions.isdisjoint(map(normalize_answer, _example_questions(e)))]


def _example_questions(example: Any) -> Iterator[str]:
    yield example.question
    yield from getattr(example, "extra", {}).get("questions", ())


def questions_of(path: Path) -> Iterator[str]:
    """Every question and disambiguated question of a file in one of the documented layouts.  Raises FormatError."""
    rows = (row for _, row in json_io.read_lines(path)) if ".jsonl" in path.name else json_io.read(path)
    try:
        for row in rows:
            yield row["question"]
            for pair in [*row.get("qa_pairs", ()), *(p for a in row.get("annotations", ()) for p in a.get("qaPairs", ()))]:
                yield pair["question"]
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"not a file of questions: {error}", file=path) from None


def excluded_questions(paths: Sequence[Path]) -> Excluded:
    """Raises FormatError."""
    return Excluded(frozenset(normalize_answer(q) for path in paths for q in questions_of(path)))
