"""Figures reported in papers, shown next to ours and labelled as theirs.  `figures.json` names the table of each."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """`values[system][(metric, scope)]`: shares as fractions; None if the paper has a gap.  `shows`: its chart."""

    id: str
    paper: str
    where: str
    data: str
    shows: str
    values: Mapping[str, Mapping[tuple[str, str], float | None]]
    note: str = ""

    @property
    def label(self) -> str:
        return f"{self.paper}, {self.where}, {self.data}"

    def value(self, system: str, metric: str, scope: str = "all") -> float | None:
        return self.values.get(system, {}).get((metric, scope))

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for row in self.values.values() for metric, _ in row))


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
            t["shows"],
            {name: {(m, s): v for (m, s), v in zip(t["columns"], row, strict=True)} for name, row in t["rows"].items()},
            t.get("note", ""),
        )
        for t in body["tables"]
    )


def tables_of(shows: str) -> list[PublishedTable]:
    return [t for t in published() if t.shows == shows]
