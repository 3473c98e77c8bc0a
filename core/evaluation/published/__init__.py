"""The figures and worked examples of papers, shown next to ours and labelled as theirs.  `figures.json` names the table of each
figure."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.datasets import rows
from core.settings import ROOT
from core.text import question_key
from core.types import ReferenceQuestion

EXAMPLES = ROOT / "data" / "papers" / "examples.jsonl"
FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """`values[system][(metric, scope)]`: shares as fractions; None if the paper has a gap.

    What repeats it: `questions`, data set and file; `systems`, of each row of ours the system, with options behind it (`verdict embed=question`);
    `takes`, what the paper's own figures need, and one `command`.
    """

    id: str
    paper: str
    where: str
    data: str
    values: Mapping[str, Mapping[tuple[str, str], float | None]]
    note: str = ""
    questions: str = ""
    systems: Mapping[str, str] = field(default_factory=dict)
    takes: str = ""
    command: str = ""

    @property
    def label(self) -> str:
        return f"{self.paper}, {self.where}, {self.data}"

    def value(self, system: str, metric: str, scope: str = "all") -> float | None:
        return self.values.get(system, {}).get((metric, scope))


@functools.cache
def published() -> tuple[PublishedTable, ...]:
    """All tables, in the order of the file."""
    body = json.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        PublishedTable(
            t["id"],
            t["paper"],
            t["where"],
            t["data"],
            {name: {(m, s): v for (m, s), v in zip(t["columns"], row, strict=True)} for name, row in t["rows"].items()},
            **{name: t[name] for name in ("note", "questions", "systems", "takes", "command") if name in t},
        )
        for t in body["tables"]
    )


@functools.cache
def examples() -> tuple[ReferenceQuestion, ...]:
    """The papers' worked examples, each with passages in our own words.  `extra` has `paper`, `where` and `published` (each
    system's published answers)."""
    return tuple(rows.load(EXAMPLES))


def example_of(question: str) -> ReferenceQuestion | None:
    return next((e for e in examples() if question_key(e.question) == question_key(question)), None)
