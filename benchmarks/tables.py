"""The tables of the documents that have figures of systems, written from stored runs.

    python -m benchmarks.tables [--check]

In a document, a table is between `<!-- table: NAME -->` and `<!-- end of table -->`; TABLES has the names.  Its figures are those of the shipped runs
(data/shipped/runs.jsonl.xz) and, where there are any, of the runs over AmbigNQ that `benchmarks.ambignq --pack` stored.  A table with columns of prose
keeps these, and its rows.  `--check` writes nothing; exit code 1 when a document has other figures.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import ambignq
from benchmarks.evaluating import markdown_table, points
from core.disk import write_text
from core.settings import ROOT
from core.systems import mechanism_only
from storage.shipped import runs

Report = dict[str, Any]
Reports = dict[str, Report]  # by system
DOCUMENTS = ("README.md", "docs/systems.md", "benchmarks/results/systems.md", "benchmarks/results/verdict.md")
GROUNDED = ("ambiscope", "verdict", "rectify", "dpr-threshold", "ambigprompt")  # beside VerDICt's own metrics
_BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(\n<!-- end of table -->)", re.DOTALL)


def stored() -> tuple[Reports, Reports]:
    """The shipped reports over the development set, and the stored ones over AmbigNQ.  Raises FormatError, StorageError."""
    reports = [run["report"] for run in runs.packed(traced=False)]
    starter = [r for r in reports if r["provenance"]["questions"] == "starter"]
    return tuple({r["provenance"]["system"]["name"]: r for r in some} for some in (starter, ambignq.packed()))  # type: ignore[return-value]


def score(report: Report, metric: str, group: str = "all", interval: bool = False) -> str:
    """In points."""
    ends = report["intervals"].get(metric, {}).get(group) if interval else None
    return points(report["scores"].get(metric, {}).get(group), ends)


def both(report: Report, metric: str) -> str:
    """Over all and over the ambiguous questions."""
    return f"{score(report, metric)} / {score(report, metric, 'multi')}"


def by_system(reports: Reports, metric: str, columns: Mapping[str, Callable[[Report], str]]) -> str:
    """A row for each system, the best by a metric first."""
    order = sorted(reports, key=lambda name: -(reports[name]["scores"].get(metric, {}).get("all") or 0.0))
    names = {name: f"`{name}`{' (mechanism only)' * bool(mechanism_only(name))}" for name in order}
    return markdown_table(
        ["system", *columns], [[names[name], *(cell(reports[name]) for cell in columns.values())] for name in order]
    )


def development(starter: Reports, _: Reports) -> str:
    references = next(iter(starter.values()))["scores"]["reference answers"]["all"]
    columns: dict[str, Callable[[Report], str]] = {
        "F1 answer, all": lambda r: score(r, "F1 answer", interval=True),
        "multi": lambda r: score(r, "F1 answer", "multi"),
        "precision / recall": lambda r: f"{score(r, 'precision')} / {score(r, 'recall')}",
        f"answers ({references:.2f})": lambda r: f"{r['scores']['answers']['all']:.2f}",
        "seconds": lambda r: f"{r['timings']['seconds_median']:.2f}",
        "MB": lambda r: f"{r['timings']['peak_memory_mb']:.0f}",
        "commit": lambda r: str(r["provenance"]["commit"][:8]),
    }
    return by_system(starter, "F1 answer", columns)


def grounded(starter: Reports, _: Reports) -> str:
    columns: dict[str, Callable[[Report], str]] = {
        "G-precision": lambda r: both(r, "G-precision"),
        "G-recall": lambda r: both(r, "G-recall"),
        "G-F1": lambda r: f"{score(r, 'G-F1', interval=True)} / {score(r, 'G-F1', 'multi')}",
        "ungrounded precision": lambda r: score(r, "ungrounded precision"),
        "ungrounded recall": lambda r: score(r, "ungrounded recall"),
    }
    return by_system({name: r for name, r in starter.items() if name in GROUNDED}, "G-F1", columns)


def not_ranked(starter: Reports, _: Reports) -> str:
    rows = [f"| `{name}` | {mechanism_only(name)} |" for name in sorted(starter) if mechanism_only(name)]
    return "\n".join(["| system | its run over the development set |", "|---|---|", *rows])


def over_wikipedia(_: Reports, wikipedia: Reports) -> str:
    if not wikipedia:
        return ""
    return ambignq.table(wikipedia, {i for r in wikipedia.values() for i in r["answerable"]}, "AmbigNQ")


def readme(starter: Reports, wikipedia: Reports) -> Mapping[str, Mapping[str, str]]:
    """Head of a column -> system -> its cell."""
    cells = {"starter": {n: score(r, "F1 answer") + " (mechanism only)" * bool(mechanism_only(n)) for n, r in starter.items()}}
    return cells | {"AmbigNQ": {n: score(r, "F1 answer") for n, r in wikipedia.items()}}


TABLES: dict[str, Callable[[Reports, Reports], str | Mapping[str, Mapping[str, str]]]] = {
    "readme": readme,
    "development": development,
    "grounded": grounded,
    "not-ranked": not_ranked,
    "ambignq": over_wikipedia,
}


def refill(table: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """A table with other cells in some columns, for the systems that have any."""
    head, rule, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    for row in rows:
        for name, cells in columns.items():
            row[head.index(name)] = cells.get(row[0].strip("`"), row[head.index(name)])
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def updated(text: str, starter: Reports, wikipedia: Reports) -> str:
    """A document with the figures of the runs; a table of runs that are not there stays as it is.  Raises KeyError for the name of no table."""

    def write(match: re.Match[str]) -> str:
        table = TABLES[match[2]](starter, wikipedia)
        return match[1] + ((table or match[3]) if isinstance(table, str) else refill(match[3], table)) + match[4]

    return _BLOCK.sub(write, text)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(argv)
    reports, changed = stored(), []
    for path in (ROOT / name for name in DOCUMENTS):
        text = path.read_text(encoding="utf-8")
        if (new := updated(text, *reports)) != text:
            changed.append(path.relative_to(ROOT).as_posix())
            if not args.check:
                write_text(path, new)
    print("\n".join(changed) or "every table has the figures of the stored runs")
    return int(args.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
