"""`python -m core evaluate`: a system over a question file, rows to disk as they come, and a report with intervals."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.commands.score import percent
from core.errors import AmbiscopeError, InputError
from core.settings import Settings

if TYPE_CHECKING:
    from core.evaluation import Report


def add_parser(commands: Any) -> None:
    evaluate = commands.add_parser("evaluate", help="run a system over a question file and report its metrics")
    evaluate.add_argument("--system", help="name of a system (default: AMBISCOPE_SYSTEM)")
    evaluate.add_argument(
        "--questions", type=Path, required=True, help="AmbigNQ light JSON, or JSONL(.gz) with answers and perhaps passages"
    )
    evaluate.add_argument(
        "--corpus", help="name of a corpus (default: starter); not opened when every question brings its passages"
    )
    evaluate.add_argument("--limit", type=int, help="the first N questions only")
    evaluate.add_argument("--top-k", type=int, help="passages to read (default: 10)")
    evaluate.add_argument("--max-answers", type=int)
    evaluate.add_argument("--stop-above", type=float)
    evaluate.add_argument(
        "--no-clarify", action="store_true", help="answers only: no disambiguated questions, several times faster"
    )
    evaluate.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the system, for instance eoi_bias=-0.5"
    )
    evaluate.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    evaluate.add_argument("--out", type=Path, help="folder for rows.jsonl and report.json; a killed run goes on there")
    evaluate.add_argument("--json", action="store_true", help="print the report as one JSON object")
    evaluate.set_defaults(run=run)


def _extra(pairs: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set {pair}: write NAME=VALUE")
        try:
            out[name] = json.loads(value)
        except json.JSONDecodeError:
            out[name] = value
    return out


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises AmbiscopeError, after the report is out, when every question failed: nothing was measured."""
    from tqdm import tqdm

    from core.datasets import load
    from core.engine import Engine
    from core.evaluation import evaluate
    from core.systems.base import Options

    questions = load(args.questions)
    own = all(q.passages is not None for q in questions[: args.limit])
    options = Options(
        top_k=settings.top_k if args.top_k is None else args.top_k,
        max_answers=settings.max_answers if args.max_answers is None else args.max_answers,
        stop_above=args.stop_above,
        clarify=not args.no_clarify,
        extra=_extra(args.set),
    )
    system = Engine(settings).system(args.system, args.corpus, options, own_passages=own)
    bar = tqdm(
        total=min(len(questions), args.limit or len(questions)),
        unit=" questions",
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        report = evaluate(
            system,
            questions,
            out_dir=args.out,
            limit=args.limit,
            seed=args.seed,
            progress=lambda done, _: bar.update(done - bar.n),
        )
    if args.out:
        (args.out / "report.json").write_text(json.dumps(report.to_json(), indent=1, ensure_ascii=False))
    if args.json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        _print(report)
    if report.failed == report.n:
        raise AmbiscopeError(f"every question failed; the first one: {report.rows[0]['error']}")
    return 0


def _print(report: Report) -> None:
    print(f"{report.n} questions, {report.failed} failed")
    for name, values in report.scores.items():
        interval = (report.intervals.get(name) or {}).get("all")
        between = f"  [{percent(interval[0])}, {percent(interval[1])}]" if interval else ""
        if "answers" in name and name != "F1 answer":
            print(f"{name:18} {values['all'] or 0:8.2f} {values['multi'] or 0:9.2f}")
        else:
            print(f"{name:18} {percent(values['all']):>8} {percent(values['multi']):>9}{between}")
    print(", ".join(f"{k} {v:.2f}" for k, v in report.timings.items() if v is not None))
