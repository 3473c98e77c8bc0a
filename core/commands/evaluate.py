"""`python -m core evaluate`: runs a system on a question file and reports the metrics with intervals.

Rows are written to disk as they are computed.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cluster.connect import add_option, connected
from core.commands.score import percent
from core.errors import InputError
from core.evaluation.judges import CHOICES
from core.settings import Settings

if TYPE_CHECKING:
    from core.evaluation.report import Report


MAX_REPEATS = 100


def add_parser(commands: Any) -> None:
    evaluate = commands.add_parser("evaluate", help="run a system on a question file and report its metrics")
    add_question_options(evaluate)
    evaluate.add_argument(
        "--exclude",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help="file whose questions are not asked, such as the training file of the weights; may be repeated",
    )
    evaluate.add_argument("--corpus", help="corpus to read (default: starter); not used if every question has its own passages")
    add_system_options(evaluate)
    evaluate.add_argument(
        "--judge",
        choices=CHOICES,
        help="who decides what a passage supports, for the grounded metrics (default: the references, if they say so)",
    )
    evaluate.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="fact for the report and its charts, such as 'training questions=100'; may be repeated",
    )
    evaluate.add_argument("--traces", action="store_true", help="with --out, save every prediction with its steps")
    evaluate.add_argument(
        "--batch",
        type=int,
        default=1,
        help="questions to run at the same time: for systems that call an endpoint, and on a GPU, which reads them together (default: 1)",
    )
    evaluate.add_argument(
        "--repeat",
        type=int,
        default=1,
        metavar="N",
        help="evaluate N times and report mean and deviation: for systems that sample or call a language model (default: 1)",
    )
    add_option(evaluate)
    evaluate.add_argument(
        "--out", type=Path, metavar="FOLDER", help="folder for the results; the same command resumes an interrupted run"
    )
    evaluate.add_argument("--json", action="store_true", help="print the report as one JSON object")
    evaluate.set_defaults(run=run)


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """The question file, its layout, the limit and the seed."""
    parser.add_argument(
        "--questions",
        type=Path,
        required=True,
        metavar="FILE",
        help="question file; `python -m core datasets` lists the formats",
    )
    parser.add_argument(
        "--layout",
        metavar="NAME",
        help="format of the question file (default: recognised; `python -m core datasets` lists them)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="use only the first N questions")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap intervals (default: 0)")


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """The system that answers, and its options, which `system_options` reads."""
    parser.add_argument("--system", help="system that answers (default: AMBISCOPE_SYSTEM)")
    parser.add_argument("--top-k", type=int, metavar="N", help=f"number of passages to read (default: {Settings.top_k})")
    parser.add_argument(
        "--max-answers", type=int, metavar="N", help=f"maximum number of answers (default: {Settings.max_answers})"
    )
    parser.add_argument(
        "--stop-above", type=float, metavar="P", help="stop when P([EOI]) exceeds P (default: when [EOI] beats every answer)"
    )
    parser.add_argument(
        "--no-clarify", dest="clarify", action="store_false", help="do not write disambiguated questions; several times faster"
    )
    parser.add_argument(
        "--no-coverage-check",
        dest="check_coverage",
        action="store_false",
        help="keep answers whose document lacks what the question names",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the system, such as loop=fast; may be repeated",
    )


def system_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_system_options` as arguments of Engine.ask and EvaluationPlan.  Raises InputError."""
    names = ("system", "corpus", "top_k", "max_answers", "stop_above", "clarify", "check_coverage")
    return {**{name: getattr(args, name) for name in names}, "extra": read_pairs(args.set, "--set")}


def read_pairs(pairs: list[str], flag: str) -> dict[str, Any]:
    """NAME=VALUE options as a dictionary.  `flag`: the name of the option, for messages.  Raises InputError."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{flag} {pair}: write NAME=VALUE")
        try:
            values[name] = json.loads(value)
        except json.JSONDecodeError:
            values[name] = value
    return values


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Runs the command.  Raises AmbiscopeError, after printing the report, if every question failed."""
    from tqdm import tqdm

    if args.ray and args.batch != 1:
        raise InputError("--batch and --ray cannot be combined: each worker of a cluster asks one question at a time")
    if not 1 <= args.repeat <= MAX_REPEATS:
        raise InputError(f"--repeat is {args.repeat}; it must be 1 to {MAX_REPEATS}")
    from core.cluster.jobs import evaluating
    from core.evaluation.plan import EvaluationPlan, run_plan
    from core.evaluation.report import over_repeats
    from core.serve.choice import make_engine

    plan = EvaluationPlan(
        questions=str(args.questions.resolve()),
        layout=args.layout,
        exclude=tuple(str(path.resolve()) for path in args.exclude),
        limit=args.limit,
        judge=args.judge,
        seed=args.seed,
        traces=args.traces,
        batch=args.batch,
        tags=read_pairs(args.tag, "--tag"),
        **system_options(args),
    )
    bar = tqdm(unit=" questions", file=sys.stderr, disable=not sys.stderr.isatty())
    with bar, connected(args.ray, settings) as cluster:

        def progress(finished: int, total: int) -> None:
            bar.total = total
            bar.update(finished - bar.n)

        elsewhere = None if cluster is None else partial(evaluating, cluster)
        engine, say = make_engine(settings), partial(print, file=sys.stderr)
        reports = []
        for number in range(1, args.repeat + 1):
            folder = args.out / f"repeat-{number}" if args.out and args.repeat > 1 else args.out
            reports.append(run_plan(plan, engine, folder, progress=progress, say=say, elsewhere=elsewhere))
            bar.reset()
    report = reports[0] if args.repeat == 1 else over_repeats(reports)
    for problem in report.problems if report.failed < report.n else ():  # else an error says it
        print(f"warning: {problem}", file=sys.stderr if args.json else sys.stdout)
    if args.json:
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        _print(report)
    report.demand()
    return 0


def _print(report: Report) -> None:
    from core.evaluation.summary import calibration_error
    from core.metrics import entry_of

    judged = f", {report.judge_failed} not judged completely" if report.judge_failed else ""
    repeats = f", the first of {report.repeats['n']} runs and their mean ± deviation" if report.repeats else ""
    print(f"{report.n} questions, {report.failed} failed{judged}{repeats}")
    print(f"{'':18} {'all':>8} {'multi':>9} {'n':>6}")
    for name, values in report.scores.items():
        interval = (report.intervals.get(name) or {}).get("all")
        suffix = f"  [{percent(interval[0])}, {percent(interval[1])}]" if interval else ""
        if report.repeats:
            mean, deviation = (report.repeats[part][name]["all"] for part in ("mean", "deviation"))
            suffix += f"  mean {percent(mean)} ± {percent(deviation)}"
        n = f"{report.counts.get(name, {}).get('all', 0):6}"
        if entry_of(name).is_count:
            print(f"{name:18} {values['all'] or 0:8.2f} {values['multi'] or 0:9.2f} {n}")
        else:
            print(f"{name:18} {percent(values['all']):>8} {percent(values['multi']):>9} {n}{suffix}")
    if outcomes := report.summary.get("outcomes"):
        print(f"outcome: accuracy {percent(outcomes['accuracy'])}, macro-F1 {percent(outcomes['macro_f1'])}, n {outcomes['n']}")
    if (error := calibration_error(report.summary)) is not None:
        print(f"calibration error of {report.summary['reliability']['answer']['n']} answers: {error:.1f} points")
    print(", ".join(f"{k} {v:.2f}" for k, v in report.timings.items() if v is not None))
