"""Evaluations as benchmarks run them: `core evaluate` in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.settings import ROOT, child_environment


def evaluate(
    system: str, questions: Path, out: Path, corpus: str = "starter", words: Sequence[str] = (), limit: int = 0, **settings: str
) -> dict[str, Any] | None:
    """The report of a system over a question file; None where the evaluation fails.

    A run that was broken off is continued in its folder `out`; one that has its report is not repeated.
    words: further arguments of `core evaluate`.  limit: the first so many questions (0: all).  settings: of the process.
    """
    report = out / "report.json"
    if not report.exists():
        command = [sys.executable, "-m", "core", "evaluate", "--system", system, "--questions", str(questions.resolve())]
        command += ["--corpus", corpus, "--out", str(out), *(["--limit", str(limit)] if limit else []), *words]
        subprocess.run(command, cwd=ROOT, env=child_environment(**settings), check=False, stdout=subprocess.DEVNULL)
    return json.loads(report.read_text(encoding="utf-8")) if report.exists() else None


def points(share: float | None, interval: Sequence[float] | None = None) -> str:
    """A share in points, with its interval: `72.7 [69.0, 76.5]`."""
    if share is None:
        return "undefined"
    return f"{100 * share:.1f}" + (f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else "")
