"""`loop`: trains the answering model on judgments, and evaluates it before and after."""

from __future__ import annotations

import argparse
import signal
from dataclasses import fields
from pathlib import Path

from core.errors import CancelledError, InputError
from core.settings import Settings
from storage.analysis.loop import MINUTES, PRACTICE, LoopOptions, run_loop
from storage.commands.base import Add, Progress, Result, add_filters, filters_of
from storage.store import Store


def run(url: str, args: argparse.Namespace) -> Result:
    settings = Settings.from_env()
    with Store(url) as store:
        values = vars(args) | {"filters": filters_of(store, args), "replay": None if args.no_replay else args.replay}
        options = LoopOptions(**{field.name: values[field.name] for field in fields(LoopOptions)})
        if args.snapshot is not None and not options.filters.empty:
            raise InputError("filters do not apply to an existing snapshot; leave them out, or let the loop take a snapshot")
        before = signal.signal(signal.SIGTERM, _stop)  # so that the process that trains ends too
        try:
            result = run_loop(store, settings, options, progress=Progress())
        finally:
            signal.signal(signal.SIGTERM, before)
    left_out = f"{result.left_out} questions were" if result.left_out else "no question was"
    reason = " because the model was trained on them" if result.left_out else ""
    outcome = f"checkpoint {result.checkpoint}; evaluations {result.before}, {result.after}"
    return result.to_json(), f"{result.words()}\n{left_out} left out{reason}; {outcome}"


def _stop(_number: int, _frame: object) -> None:
    raise CancelledError("the loop was stopped; run the same command again to resume it")


def add_parser(add: Add) -> None:
    summary = "train the answering model on the judgments of a snapshot, and evaluate it before and after on other questions"
    loop = add("loop", run, summary)
    loop.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder for this loop; the same command resumes an interrupted one",
    )
    loop.add_argument("--snapshot", type=int, metavar="N", help="use snapshot N (default: take a new one)")
    loop.add_argument("--minutes", type=float, help=f"train for so many minutes at most (default: {MINUTES:g})")
    loop.add_argument("--steps", type=int, help="train for so many steps instead")
    loop.add_argument(
        "--questions", type=Path, metavar="FILE", help="question file for the evaluations (default: data/starter)"
    )
    loop.add_argument("--corpus", default="", help="corpus to read (default: AMBISCOPE_CORPUS)")
    loop.add_argument("--limit", type=int, metavar="N", help="use only N questions")
    loop.add_argument(
        "--init", default="default", help="checkpoint to start from: a bundled name or a folder (default: default)"
    )
    loop.add_argument(
        "--rank",
        type=int,
        default=16,
        help="of the low-rank differences of the encoder that are trained; 0: all weights (default: %(default)s)",
    )
    loop.add_argument(
        "--lr",
        type=float,
        default=2e-4,
        help="learning rate of the encoder; with --rank 0 a tenth of it (default: %(default)s)",
    )
    loop.add_argument("--head-lr", type=float, default=5e-5, help="learning rate of all other weights (default: %(default)s)")
    loop.add_argument(
        "--replay",
        type=Path,
        default=PRACTICE,
        metavar="FOLDER",
        help="other data to train on, beside the snapshot (default: data/practice)",
    )
    loop.add_argument("--no-replay", action="store_true", help="train on the snapshot alone")
    loop.add_argument("--clarify", action="store_true", help="also write disambiguated questions; several times slower")
    loop.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    add_filters(loop)
