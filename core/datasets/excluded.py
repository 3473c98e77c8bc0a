"""Questions that must not be in both a training file and a file that weights are evaluated on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from core import json_io
from core.errors import FormatError
from core.text import answer_words

ExampleT = TypeVar("ExampleT")


@dataclass(frozen=True)
class Excluded:
    """Questions, normalised as answers are (`core.text.answer_words`)."""

    questions: frozenset[str]

    def without(self, examples: Sequence[ExampleT]) -> list[ExampleT]:
        """The examples (with `question`, and disambiguated questions in `extra["questions"]`) that ask none of these
        questions."""
        if not self.questions:
            return list(examples)
        return [e for e in examples if not self.have(_example_questions(e))]

    def have(self, questions: Iterable[str]) -> bool:
        """Whether any of the given questions is excluded."""
        return not self.questions.isdisjoint(map(answer_words, questions))


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
    """The questions of all excluded files.  Raises FormatError."""
    return Excluded(frozenset(answer_words(q) for path in paths for q in questions_of(path)))
