"""A reader that answers questions from a system's answers as one text, for ASQA's Disambig-F1 (Stelmakh et al. 2022, section
5).

Theirs is a RoBERTa trained on SQuAD 2.0.  AMBISCOPE_ASQA_READER can name such a reader; "default" is the bundled reader, whose figures are not comparable
and have their own name.
"""

from __future__ import annotations

from typing import Protocol

from core import types as t
from core.metrics.base import Example, Readings
from core.metrics.long_answers import text_of
from core.settings import Settings

BUNDLED = "default"


class LongReader(Protocol):
    weights: str  # their digest

    def read(self, question: str, text: str) -> str:
        """The answer to a question from a text, "" if there is none."""
        ...


class BundledReader:
    def __init__(self, settings: Settings) -> None:
        from core.models.span.reader import load_reader

        self.reader, self.weights = load_reader(settings.reader, settings.device)

    def read(self, question: str, text: str) -> str:
        if not text.strip():
            return ""
        best = self.reader.read(question, [t.Passage("", "", text)], 1)[0].best
        return best.text if best else ""


def load_long_reader(settings: Settings) -> LongReader | None:
    """The reader that AMBISCOPE_ASQA_READER names; None if it is empty.  Raises CheckpointError."""
    if not settings.asqa_reader:
        return None
    if settings.asqa_reader == BUNDLED:
        return BundledReader(settings)
    from core.models.span.squad import SquadReader

    return SquadReader(settings.asqa_reader, settings.device)


def read_long(reader: LongReader, name: str, example: Example) -> Readings | None:
    """A reader's answers to the references' disambiguated questions; None without human long answers, that is, outside ASQA."""
    if not example.long_answers:
        return None
    pairs = max((a.pairs for a in example.annotations), key=len, default=())
    text = text_of(example)
    return Readings(tuple((reader.read(p.question, text), p.answers) for p in pairs), comparable=name != BUNDLED)
