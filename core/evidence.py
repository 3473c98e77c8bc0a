"""Where an answer stands in passages."""

from __future__ import annotations

from collections.abc import Sequence

from core.text import find_spans
from core.types import Evidence, RetrievedPassage


def occurrences(answer: str, passages: Sequence[RetrievedPassage], limit: int = 20) -> tuple[Evidence, ...]:
    """Every place where the words of the answer stand, in the order of the passages; at most `limit`.

    Nothing for answers of less than 4 characters: "3" stands in many passages that say nothing of the answer; a year is fine.
    """
    if len(answer) < 4:
        return ()
    out = [
        Evidence(p.passage.id, start, end, p.passage.text[start:end])
        for p in passages
        for start, end in find_spans(p.passage.text, answer)
    ]
    return tuple(out[:limit])
