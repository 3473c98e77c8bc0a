"""Fakes for tests of systems: passages on a shelf, models with fixed proposals, and the answers of a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core import types as t
from core.settings import Settings
from core.systems.base.system import SystemParts, answer


class Shelf:
    """A retriever that gives the same passages to every query, as many as wanted."""

    def __init__(self, passages: Sequence[t.Passage]) -> None:
        self.passages, self.queries = passages, []  # type: tuple[Sequence[t.Passage], list[str]]

    def search(self, query: str, k: int) -> list[t.RetrievedPassage]:
        self.queries.append(query)
        return [t.RetrievedPassage(p, i, 1 / i, 1 / i) for i, p in enumerate(self.passages[:k], 1)]


class FixedModel:
    """Proposes what it was given, step by step, whatever was said before; keeps the previous answers that it was told."""

    def __init__(self, *proposals: t.Proposal) -> None:
        self.proposals, self.asked = list(proposals), []  # type: tuple[list[t.Proposal], list[tuple[str, ...]]]

    def propose(self, question: str, passages: Sequence[t.RetrievedPassage], previous: Sequence[str]) -> t.Proposal:
        self.asked.append(tuple(previous))
        return self.proposals[min(len(self.asked), len(self.proposals)) - 1]


def candidates(**probabilities: float) -> list[t.Candidate]:
    """Candidates by name; `_` stands for a space."""
    return [t.Candidate(name.replace("_", " "), p) for name, p in probabilities.items()]


def proposal(eoi: float, **probabilities: float) -> t.Proposal:
    return t.Proposal(tuple(candidates(**probabilities)), eoi)


def parts(passages: Sequence[t.Passage] | None = None, **changes: Any) -> SystemParts:
    """Over these passages; None: no corpus."""
    shelf = None if passages is None else Shelf(passages)
    return SystemParts(changes.pop("settings", Settings()), changes.pop("retriever", shelf), "shelf", "digest", **changes)


def texts(prediction: t.Prediction) -> list[str]:
    return [a.text for a in prediction.answers]


def stopped_after(system: Any, question: t.Question, kind: type, count: int) -> list[t.Event]:
    """The events of a run that a person stops when `count` events of a kind were seen."""
    seen: list[t.Event] = []
    system.parts = replace(system.parts, cancelled=lambda: sum(isinstance(e, kind) for e in seen) >= count)
    answer(system, question, seen.append)
    return seen


def cases(text: str) -> list[tuple[Any, ...]]:
    """Cases of a parametrized test, one a line, with cells between `|`; `-` is None, `yes` and `no` are truth values; a note may follow two spaces and `#`."""
    words = {"-": None, "yes": True, "no": False}
    lines = [line.split("  # ")[0].strip() for line in text.splitlines()]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]
    return [tuple(words.get(cell, cell) for cell in row) for row in cells]
