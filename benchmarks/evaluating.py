"""Evaluations as benchmarks run them: `core evaluate` in a separate process, so that its peak memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from core.metrics.significance.bootstrap import interval
from core.settings import ROOT, child_environment


def evaluate(
    system: str, questions: Path, out: Path, corpus: str = "starter", words: Sequence[str] = (), limit: int = 0, **settings: str
) -> dict[str, Any] | None:
    """The report of a system over a question file; None if the evaluation fails.

    A run that was broken off is continued in its folder `out`; one that has its report is not repeated.
    words: further arguments of `core evaluate`.  limit: the first so many questions (0: all).  settings: of the process.
    """
    report = out / "report.json"
    if not report.exists():
        command = [sys.executable, "-m", "core", "evaluate", "--system", system, "--questions", str(questions.resolve())]
        command += ["--corpus", corpus, "--out", str(out), *(["--limit", str(limit)] if limit else []), *words]
        subprocess.run(command, cwd=ROOT, env=child_environment(**settings), check=False, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text(encoding="utf-8")) if report.exists() else None


def points(share: float | None, ends: Sequence[float] | None = None) -> str:
    """A share in points, with the ends of its interval: `72.7 [69.0, 76.5]`."""
    if share is None:
        return "undefined"
    return f"{100 * share:.1f}" + (f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else "")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown: the first column to the left, all others to the right."""
    lines = (heads, ["---", *["--:"] * (len(heads) - 1)], *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def mean_points(shares: Sequence[float]) -> str:
    """The mean of a share per question in points, with its 95% bootstrap interval."""
    return points(sum(shares) / len(shares), interval(shares)) if shares else "undefined"
