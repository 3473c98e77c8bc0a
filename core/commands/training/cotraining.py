"""`python -m core train cotraining`: several answering models complete single-answer data.

Source: Min et al. 2020, section 5.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from core.commands.training import options
from core.commands.training.runs import about, config_of, identity, miner, say
from core.settings import Settings

ABOUT = "several answering models that complete the single-answer data (AmbigQA, section 5)"


def add_options(parser: argparse.ArgumentParser) -> None:
    limit = "at most this many questions of --reading (default: 2000)"
    options.data(parser, "reading", "multi", "annotated", "ambignq", "passages", limit=limit)
    models, rounds = options.DEFAULTS["models"], options.DEFAULTS["rounds"]
    parser.add_argument("--models", type=int, default=models, help="number of models that vote (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=rounds, help="rounds of labelling after the first training (default: %(default)s)"
    )
    options.start_from(parser, "checkpoint that every model starts from (default: the bundled answering model)")
    options.context(parser)
    options.eoi_share(parser)
    options.network(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError, CheckpointError."""
    from core.training.cotraining_run import run as cotrain

    out: Path = args.out or settings.runs_dir / args.what
    found = cotrain(args, settings, config_of(args, settings), out, miner, say, identity(args), about(args))
    print(json.dumps({"out": str(out), **found}))
    return 0
