"""`python -m core train signals`: the weights and thresholds of verdict without a language model."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path

from core.commands.training import options
from core.commands.training.runs import say
from core.errors import InputError
from core.settings import Settings

ABOUT = "the weights by which verdict trusts a passage without a language model"


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {"annotated": "folders with questions.json and passages.tsv: their held-out questions are asked"}
    options.data(parser, "annotated", limit="at most this many questions (default: %(default)s, all)", **texts)
    init = "the answering model (default: AMBISCOPE_ANSWERER)"
    options.start_from(parser, init, "the reader that they are fitted for (default: AMBISCOPE_READER)")
    options.output(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Writes OUT/signals.json, which belongs next to the reader's weights.  Raises InputError, CheckpointError,
    StorageError.
    """
    if not args.annotated:
        raise InputError("train signals needs --annotated FOLDER (questions.json and passages.tsv)")
    from core.models.ranking.signal_weights import write_signals
    from core.training.signals import fit_signals, see

    asked = replace(settings, reader=args.reader or settings.reader, answerer=args.init or settings.answerer)
    seen = see(asked, args.annotated, args.limit, say, args.seed)
    names = ", ".join(folder.resolve().name for folder in args.annotated)
    found, _ = fit_signals(seen, f"{len(seen)} questions of {names} held out from training")
    out: Path = args.out or settings.runs_dir / "signals"
    write_signals(out, found)
    print(json.dumps({"out": str(out), **{k: v for k, v in asdict(found).items() if k != "weighing"}}))
    return 0
