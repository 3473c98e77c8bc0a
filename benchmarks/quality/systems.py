"""Every bundled system over the same questions and passages, one after another: quality with intervals, seconds, memory, parameters.

    python -m benchmarks.quality.systems --out var/runs/systems [--questions FILE] [--corpus starter] [--limit 60] [--systems NAME ...]

Each system has a process of its own (`python -m core evaluate`), so that its peak memory is its own.  A run that was broken off goes on where it was
(its memory is then that of its last process); one that has its report is not run again: give another --out after a change.  The run folders can be imported into the database for the evaluate page (`python -m storage import-evaluation`).  At the end the table, as Markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.engine import statuses
from core.settings import ROOT, Settings

HEAD = (
    "system",
    "F1 answer all / multi",
    "precision / recall",
    "answers (reference)",
    "seconds (p95)",
    "MB",
    "million parameters",
    "failed",
)


def cells(name: str, report: dict[str, Any]) -> tuple[str, ...]:
    """One row of the table."""
    scores, timings = report["scores"], report["timings"]
    parameters = report["provenance"].get("parameters")
    between = (report["intervals"].get("F1 answer") or {}).get("all")

    def share(metric: str, group: str = "all") -> str:
        value = scores[metric][group]
        return "undefined" if value is None else f"{100 * value:.1f}"

    def number(value: float | None, digits: int = 2) -> str:
        return "–" if value is None else f"{value:.{digits}f}"

    interval = f" [{100 * between[0]:.1f}, {100 * between[1]:.1f}]" if between else ""
    return (
        f"`{name}`",
        f"{share('F1 answer')}{interval} / {share('F1 answer', 'multi')}",
        f"{share('precision')} / {share('recall')}",
        f"{number(scores['answers']['all'])} ({number(scores['reference answers']['all'])})",
        f"{number(timings['seconds_median'])} ({number(timings['seconds_p95'])})",
        number(timings["peak_memory_mb"], 0),
        number(parameters / 1e6 if parameters else None, 0),
        str(report["failed"]),
    )


def table(rows: Sequence[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD), *rows))


def thinned(questions: Path, every: int, out: Path) -> Path:
    """Every n-th line of a JSONL(.gz) file, as a file: sets such as multi/dev are sorted by source."""
    opened = gzip.open if questions.suffix == ".gz" else open
    with opened(questions, "rt", encoding="utf-8") as lines:
        chosen = list(lines)[::every]
    out.mkdir(parents=True, exist_ok=True)
    path = out / "questions.jsonl"
    path.write_text("".join(chosen), encoding="utf-8")
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th question of a JSONL file")
    parser.add_argument("--systems", nargs="+", metavar="NAME")
    args = parser.parse_args(argv)
    questions = thinned(args.questions, args.every, args.out) if args.every > 1 else args.questions
    rows, broken = [], False
    for name in args.systems or [s.name for s in statuses(Settings.from_env()) if s.ready]:
        out = args.out / name
        command = [
            sys.executable,
            "-m",
            "core",
            "evaluate",
            "--system",
            name,
            "--questions",
            str(questions),
            "--no-clarify",
        ]
        command += ["--corpus", args.corpus, "--out", str(out), *(["--limit", str(args.limit)] if args.limit else [])]
        report = out / "report.json"
        if not report.exists():
            subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        if not report.exists():
            broken = True
            print(f"{name}: not evaluated", file=sys.stderr)
            continue
        rows.append(cells(name, json.loads(report.read_text(encoding="utf-8"))))
        print(" | ".join(rows[-1]), flush=True)
    print(table(rows))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
