"""`python -m core compare RUN_A RUN_B`: compares two finished runs.

Prints each metric's difference with interval and p-value, and the questions that differ most.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from core.commands.score import percent
from core.errors import InputError
from core.metrics.significance.bootstrap import BOOTSTRAP_SAMPLES
from core.settings import Settings


def add_parser(commands: Any) -> None:
    compare = commands.add_parser(
        "compare", help="compare two runs of `evaluate --out`: differences with intervals and p-values"
    )
    compare.add_argument("a", type=Path, metavar="RUN_A", help="a run folder, or its name under AMBISCOPE_HOME/runs")
    compare.add_argument("b", type=Path, metavar="RUN_B")
    compare.add_argument("--metric", default="F1 answer", help="metric by which to list questions (default: F1 answer)")
    compare.add_argument("--questions", type=int, default=10, metavar="N", help="number of questions to list (default: 10)")
    compare.add_argument(
        "--samples",
        type=int,
        default=BOOTSTRAP_SAMPLES,
        help=f"samples of the bootstrap and the permutation test (default: {BOOTSTRAP_SAMPLES})",
    )
    compare.add_argument("--seed", type=int, default=0)
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    compare.set_defaults(run=run)


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.evaluation.folder import read_report
    from core.metrics import entry_of
    from core.metrics.significance.compare import compare_runs, differences

    if args.questions < 0:
        raise InputError(f"--questions is {args.questions}; it must be 0 or more")
    a, b = (read_report(p if p.is_dir() or p.is_absolute() else settings.runs_dir / p)["rows"] for p in (args.a, args.b))
    comparison = compare_runs(a, b, samples=args.samples, seed=args.seed)
    if args.metric not in comparison.metrics:
        raise InputError(f"the runs do not both have the metric '{args.metric}'; both have {', '.join(comparison.metrics)}")
    questions = differences(a, b, args.metric)[: args.questions]
    if args.json:
        listed = [{"id": q.id, "question": q.question, "a": q.a, "b": q.b, "difference": q.difference} for q in questions]
        print(json.dumps({**comparison.to_json(), "metric": args.metric, "questions": listed}, ensure_ascii=False))
        return 0
    print(
        f"{comparison.common} common questions, {comparison.unpaired} in one run only; {args.samples} samples, seed {args.seed}"
    )
    print("p (Holm): corrected for the number of metrics compared at once")
    for scope in ("all", "multi"):
        print(f"\n{scope:22} {'n':>6} {'A':>8} {'B':>8} {'A - B':>8}  {'95% interval':18} {'p':>7} {'p (Holm)':>8}")
        for name, scopes in comparison.metrics.items():
            d, c = scopes[scope], scopes[scope].comparison
            if not c.n:
                continue
            if entry_of(name).is_count:
                figures = f"{d.a or 0:8.2f} {d.b or 0:8.2f} {c.difference or 0:+8.2f}  {'':18}"
            else:
                interval = f"[{_points(c.interval[0])}, {_points(c.interval[1])}]" if c.interval else ""
                figures = f"{percent(d.a):>8} {percent(d.b):>8} {_points(c.difference):>8}  {interval:18}"
            print(f"{name:22} {c.n:6} {figures} {c.p_value:7.4f} {d.holm:8.4f}")
    if questions:
        print(f"\nlargest differences in {args.metric}")
    for q in questions:
        print(f"{_points(q.difference):>8}  {percent(q.a):>6} {percent(q.b):>6}  {q.id}  {q.question}")
    return 0


def _points(value: float | None) -> str:
    """A fraction in percentage points, with its sign."""
    return "" if value is None else f"{100 * value:+.1f}"
