"""`python -m core train calibration`: fits systems' calibrations on held-out questions."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from core.commands.training import options
from core.commands.training.runs import say
from core.errors import InputError
from core.settings import Settings

ABOUT = "the calibration of the systems' probabilities"
TOP_K = 10
MOST = 50  # candidates of a system that reads once
SYSTEMS = ("ambiscope", "dpr-threshold", "one-pass", "jpr", "rectify")


def add_options(parser: argparse.ArgumentParser) -> None:
    limit = "maximum number of questions, drawn at random (default: %(default)s, all)"
    texts = {
        "annotated": "folders with questions.json and passages.tsv: their held-out questions fit the calibration for retrieved passages",
        "multi": "JSONL(.gz) files of question, passages, answers: they fit the calibration for questions that bring their passages",
    }
    options.data(parser, "annotated", "multi", limit=limit, **texts)
    parser.add_argument("--systems", nargs="+", metavar="NAME", help=f"systems to calibrate (default: {' '.join(SYSTEMS)})")
    parser.add_argument(
        "--skip",
        type=int,
        default=0,
        metavar="N",
        help="skip the questions of --annotated that --limit N draws with the same seed (default: %(default)s)",
    )
    options.output(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Writes OUT/KIND/calibration.json, which belongs next to the weights of that kind (reader, answerer), and
    OUT/runs, which later calls reuse.  The calibrations of retrieved passages and of questions' own ones stand beside
    each other there.

    Raises InputError, CheckpointError.
    """
    from core.engine import Engine
    from core.models.ranking.calibration import write_calibration
    from core.systems import SYSTEMS as KNOWN
    from core.training.calibration import cross_fitted, fit_calibration, record_runs, reliable

    names = args.systems or list(SYSTEMS)
    for name in names:
        KNOWN[name]
    if bool(args.annotated) == bool(args.multi):
        raise InputError(
            "train calibration needs either --annotated FOLDER (questions over a corpus) or --multi FILE (questions with their own passages)"
        )
    out: Path = args.out or settings.runs_dir / "calibration"
    engine = Engine(settings)
    report: dict[str, Any] = {"out": str(out)}
    asked = _asked(engine, args)
    for name in names:
        followed = []
        for corpus, questions in asked.items():
            system = engine.system(name, corpus or None, raw_options(name), own_passages=not corpus)
            place = getattr(system, "stopping").key  # noqa: B009 - every system of SYSTEMS has it, the protocol has not
            file = out / "runs" / f"{name}-{corpus or 'own'}-{place.weights}.jsonl"
            followed += record_runs(system, questions, file, say)
        of = f"{', '.join(asked)} held out from training" if args.annotated else ", ".join(f.name for f in args.multi)
        said = f"{len(followed)} questions of {of}"
        write_calibration(out / place.kind, place.name, fit_calibration(followed, said, place.weights))
        report[place.name] = reliable(followed, cross_fitted(followed))
        say(f"{place.name}: {report[place.name]}")
    print(json.dumps(report))
    return 0


def raw_options(name: str) -> Any:
    """Options with which a system continues beyond its normal end, with uncalibrated probabilities."""
    from core.systems import options_of
    from core.systems.base.options import Options
    from core.training.calibration import ENOUGH

    raw = {"calibration": "off"}
    if "loop" in options_of(name).names():
        return Options(top_k=TOP_K, stop_above=ENOUGH, clarify=False, extra=raw)
    return Options(top_k=TOP_K, max_answers=MOST, clarify=False, extra={**raw, "threshold": 0.0})


def _asked(engine: Any, args: argparse.Namespace) -> dict[str, list[Any]]:
    """The questions by corpus; "" for those that bring their passages."""
    from core import types as t
    from core.training.calibration import CalibrationQuestion
    from core.training.data.held_out_passages import held_out_passages, own_passages

    if args.multi:
        found = zip(*own_passages(engine, args.multi, args.limit, args.seed))
        own = [
            CalibrationQuestion(
                str(i), t.Question(e.question, passages=tuple(p.passage for p in passages)), e.source, (e.gold,)
            )
            for i, (e, passages) in enumerate(found)
        ]
        return {"": own}
    out: dict[str, list[Any]] = {}
    for folder in args.annotated:
        name, most = folder.resolve().name, -(-args.limit // len(args.annotated))
        examples, _ = held_out_passages(engine, [folder], 1, most, args.seed, args.skip)
        out[name] = [
            CalibrationQuestion(f"{name}/{i}", t.Question(e.question), name, (e.gold,)) for i, e in enumerate(examples)
        ]
    return out
