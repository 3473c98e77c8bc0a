"""`python -m core score`: AmbigQA's metrics of a prediction file against a reference file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from core.settings import Settings


def add_parser(commands: Any) -> None:
    score = commands.add_parser("score", help="score predictions with AmbigQA's official metrics")
    score.add_argument("--references", type=Path, required=True, metavar="FILE", help="references: AmbigNQ light JSON")
    score.add_argument(
        "--predictions",
        type=Path,
        required=True,
        metavar="FILE",
        help="predictions: JSON with {id: [answer, ...]} or {id: [{question, answer}, ...]}; an empty list or a missing id: no answer",
    )
    score.add_argument("--per-question", action="store_true", help="with --json, add the scores of each question")
    score.add_argument("--json", action="store_true", help="print one JSON object; scores are fractions")
    score.set_defaults(run=run)


def percent(value: float | None) -> str:
    """A percentage, or "undefined"."""
    return "undefined" if value is None else f"{100 * value:.1f}"


def run(args: argparse.Namespace, settings: Settings) -> int:
    from core.metrics.score.scoring import score_files

    scores = score_files(args.references, args.predictions)
    if args.json:
        counts = {"without_answer": scores.without_answer, "missing": scores.missing}
        print(json.dumps({**scores.values, **counts, **({"per_question": scores.per_question} if args.per_question else {})}))
        return 0
    print(f"{'':14} {'all':>9} {'multi':>9}")
    for name, values in scores.values.items():
        print(f"{name:14} {percent(values['all']):>9} {percent(values['multi']):>9}")
    print(
        f"without an answer: {scores.without_answer} by an empty list, {scores.missing} without an entry, of {len(scores.per_question)}"
    )
    return 0
