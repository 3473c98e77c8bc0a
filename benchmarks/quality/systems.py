"""Every bundled system over the same questions and passages, one after another: quality with intervals, seconds, memory, parameters.

    python -m benchmarks.quality.systems --out var/runs/systems [--questions FILE] [--corpus starter] [--limit 60] [--systems NAME ...]

A run that was broken off is continued (its memory is then that of its last process); one that has its report is not repeated: give another --out
after a change.  The run folders can be imported into the database for the evaluate page (`python -m storage import-evaluation`).  Prints the table
as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate, points
from core.engine import statuses
from core.settings import ROOT, Settings

HEAD = (
    "| system | F1 answer all / multi | precision / recall | answers (reference) | seconds (p95) | MB | million parameters | failed |\n"
    "|---|---|---|---|---|---|---|---|"
)


def line(name: str, report: dict[str, Any]) -> str:
    """One row of the table."""
    scores, timings = report["scores"], report["timings"]
    parameters = report["provenance"].get("parameters")

    def number(value: float | None, digits: int = 2) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    f1 = scores["F1 answer"]
    cells = (
        f"`{name}`",
        f"{points(f1['all'], (report['intervals'].get('F1 answer') or {}).get('all'))} / {points(f1['multi'])}",
        f"{points(scores['precision']['all'])} / {points(scores['recall']['all'])}",
        f"{number(scores['answers']['all'])} ({number(scores['reference answers']['all'])})",
        f"{number(timings['seconds_median'])} ({number(timings['seconds_p95'])})",
        number(timings["peak_memory_mb"], 0),
        number(parameters / 1e6 if parameters else None, 0),
        str(report["failed"]),
    )
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--systems", nargs="+", metavar="NAME")
    args = parser.parse_args(argv)
    failed = False
    print(HEAD)
    for name in args.systems or [s.name for s in statuses(Settings.from_env()) if s.ready]:
        report = evaluate(name, args.questions, args.out / name, args.corpus, ["--no-clarify"], args.limit)
        if report is None:
            failed = True
            print(f"{name}: not evaluated", file=sys.stderr)
        else:
            print(line(name, report), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
