"""`python -m core train reranker`: fits a system's rerankers on questions that its models were not trained on."""

from __future__ import annotations

import argparse
import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core import disk
from core.commands.training import options
from core.commands.training.runs import say
from core.errors import CheckpointError, InputError
from core.settings import OFF, Settings

if TYPE_CHECKING:
    from core.models.ranking.reranker import Kind, Weights

ABOUT = "the rerankers of a system"
TOP_K = 10
NEAR = "judgments.json"  # in OUT: what a fit near the present rerankers did


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {
        "annotated": "folders with questions.json and passages.tsv: their held-out questions fit the reranker for retrieved passages",
        "multi": "JSONL(.gz) files of question, passages, answers: they fit the reranker for questions that bring their passages",
    }
    options.data(parser, "annotated", "multi", limit="at most this many questions (default: %(default)s, all)", **texts)
    parser.add_argument("--system", default="ambiscope", metavar="NAME", help="whose rerankers (default: %(default)s)")
    parser.add_argument(
        "--additions",
        nargs="+",
        choices=["reranker", "verifier"],
        default=["reranker", "verifier"],
        help="a reranker alone, one that asks the verifier, or both (default: both, where the verifier can run)",
    )
    parser.add_argument(
        "--near",
        action="store_true",
        help="of few judged questions (--multi): keep the fit near the rerankers that the system has, of retrieved passages and of questions' own ones "
        "alike, and leave each as it is where that does not help on judged questions that were held out",
    )
    init = "the answering model (default: the bundled one)"
    options.start_from(parser, init, "the reader (default: AMBISCOPE_READER)")
    group = parser.add_argument_group("cost")
    group.add_argument(
        "--keep",
        type=Path,
        metavar="FILE",
        help="keep there what the models say, for the fits of other systems on these questions",
    )
    group.add_argument(
        "--quick", action="store_true", help="read in bf16 where it is native: twice as fast, the last digits differ"
    )
    options.output(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Writes OUT: a copy of the checkpoint with rerankers for retrieved passages (--annotated), for questions' own
    passages (--multi), or both.

    Raises InputError, CheckpointError, StorageError.
    """
    from core.engine import Engine
    from core.models.loading.finding import find_checkpoint
    from core.models.ranking.calibration import FILE as CALIBRATIONS
    from core.models.ranking.calibration import write_calibration
    from core.models.ranking.features import OF_VERIFIER
    from core.models.ranking.reranker import KINDS, read_weights, write_weights
    from core.models.scheduling.device import bf16_autocast, pick_device
    from core.systems import SYSTEMS, options_of
    from core.systems.base.options import Options
    from core.training.data.held_out_passages import held_out_passages, own_passages
    from core.training.judgments import calibrate_near, fit_near, recorded
    from core.training.output_cache import cached_outputs
    from core.training.reranker import LoopRuns, fit_reranker, runs_of

    if not args.annotated and not args.multi:
        raise InputError("train reranker needs --annotated FOLDER (questions.json and passages.tsv) or --multi FILE")
    if args.near and (args.annotated or not args.multi):
        raise InputError("train reranker --near takes judged questions with their passages: --multi FILE")
    SYSTEMS[args.system]
    if "additions" not in options_of(args.system).names():
        able = ", ".join(name for name in SYSTEMS if "additions" in options_of(name).names())
        raise InputError(f"{args.system} takes no additions; fit the rerankers of one of {able}")
    settings = replace(settings, answerer=args.init or "default", reader=args.reader or settings.reader)
    engine = Engine(settings)
    report: dict[str, Any] = {"system": args.system}
    fitted: dict[Kind, Weights] = {}
    judged: Any = None  # the runs of judged questions
    checkpoint = find_checkpoint(settings.answerer, "answerer")

    def fit(kind: Kind, verified: Kind, found: Any, corpora: list[str], of: str) -> None:
        """A reranker alone, and one that asks the verifier."""
        nonlocal checkpoint
        said = f"{len(found[0])} questions of {of}"
        runs, about = runs_of(engine, args.system, found[0], found[1], corpora, "verifier" in args.additions, say)
        checkpoint = about.pop("folder")
        report.update(about)
        for name, without in ((kind, OF_VERIFIER), (verified, ())):
            if ("reranker" if without else "verifier") in args.additions and (without or settings.verifier != OFF):
                fitted[name], figures = fit_reranker(runs, fitted_on=said, without=without)
                report[name] = {"fitted_on": said, **figures}

    def fit_all_near(found: Any, of: str) -> None:
        """Each reranker that the system has, near what it is."""
        nonlocal checkpoint, judged
        verified = "verifier" in args.additions and settings.verifier != OFF
        examples, passages = found
        try:
            runs, about = runs_of(engine, args.system, examples, passages, [""] * len(examples), verified, say)
        except CheckpointError:  # its base may not be installed
            if not verified or settings.verifier != "default":
                raise
            verified = False
            runs, about = runs_of(engine, args.system, examples, passages, [""] * len(examples), verified, say)
        judged = runs
        checkpoint = about.pop("folder")
        report.update(about)
        for kind in KINDS:
            present = read_weights(checkpoint, kind, args.system)
            if present is not None and (present.asks_verifier == verified):
                near = fit_near(runs, present, f"{present.fitted_on}; then {len(found[0])} judged questions of {of}")
                fitted[kind] = near.weights
                report[kind] = near.to_json()
        if not fitted:
            raise InputError(
                f"{args.system} has no reranker beside {checkpoint} that could be fitted further: leave --near out"
            )

    def recalibrate(folder: Path) -> None:
        """Each calibration near what it is; under another reranker it stands for the new weights in any case."""
        if not isinstance(judged, LoopRuns) or not (checkpoint / CALIBRATIONS).is_file():
            return
        for kind, weights in fitted.items():
            before, after = (
                getattr(  # noqa: B009 - every system with calibrations has it, the protocol has not
                    Engine(replace(settings, answerer=str(where))).system(
                        args.system, None, Options(clarify=False), own_passages=kind.startswith("own")
                    ),
                    "stopping",
                )
                for where in (checkpoint, folder)
            )
            if before.calibration is not None:
                questions = sum(bool(e.gold) for e in judged.examples)
                said = f"{before.calibration.fitted_on}; then {questions} judged questions"
                near = calibrate_near(recorded(judged, weights), before.calibration, said, after.key.weights)
                write_calibration(folder, after.key.name, near.calibration)
                report[kind]["calibration"] = near.to_json()

    with ExitStack() as how:
        if args.keep:
            how.enter_context(cached_outputs(args.keep))
        if args.quick:
            how.enter_context(bf16_autocast(pick_device(settings.device)))
        if args.annotated:
            names = ", ".join(f.resolve().name for f in args.annotated)
            found = held_out_passages(engine, args.annotated, TOP_K, args.limit, args.seed)
            corpora = [e.extra["folder"] for e in found[0]]
            fit("retrieved", "retrieved_verified", found, corpora, f"{names} held out from training")
        names = ", ".join(f.name for f in args.multi)
        if args.near:
            fit_all_near(own_passages(engine, args.multi, args.limit, args.seed, judged=True), names)
        elif args.multi:
            found = own_passages(engine, args.multi, args.limit, args.seed)
            fit("own", "own_verified", found, [""] * len(found[0]), names)
    out: Path = args.out or settings.runs_dir / "reranker"
    with disk.locked(out, "a training"):
        for file in checkpoint.iterdir():
            if file.is_file() and file.resolve() != (out / file.name).resolve():
                with disk.replacing(out / file.name) as draft:
                    shutil.copyfile(file, draft)
        for kind, weights in fitted.items():
            write_weights(out, weights, kind, args.system)
        if args.near:
            recalibrate(out)
            disk.write_text(out / NEAR, json.dumps({kind: report[kind] for kind in fitted}, indent=1))
    print(json.dumps({"out": str(out), **report}))
    return 0
