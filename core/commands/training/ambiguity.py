"""`python -m core train ambiguity`: the classifier and lexicon of disambig-first, from AmbigNQ.

It takes seconds to minutes on a CPU.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from core.commands.training import options
from core.commands.training.runs import say
from core.errors import InputError
from core.settings import Settings

ABOUT = "the classifier and the lexicon of disambig-first"


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {"ambignq": "AmbigNQ light JSON with ambiguous and unambiguous questions"}
    options.data(parser, "ambignq", "ambignq-dev", **texts)
    options.output(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without --ambignq."""
    if args.ambignq is None:
        raise InputError("train ambiguity needs --ambignq FILE: AmbigNQ light JSON with ambiguous and unambiguous questions")
    from core.models.encoders.sentence_encoder import load_encoder
    from core.models.ranking.ambiguity import ENCODER, save_ambiguity
    from core.training.ambiguity import fit

    out: Path = args.out or settings.runs_dir / "ambiguity"
    encoder = load_encoder(replace(settings, encoder=ENCODER))
    fitted = fit(args.ambignq, args.ambignq_dev, encoder, args.seed, say)
    files = {"ambignq": args.ambignq.name, "ambignq_dev": args.ambignq_dev.name if args.ambignq_dev else None}
    about = {"arguments": {"what": "ambiguity", **files, "seed": args.seed}, "figures": fitted.figures}
    save_ambiguity(out, fitted.weights, fitted.bias, fitted.lexicon, about)
    print(json.dumps({"out": str(out), **fitted.figures}))
    return 0
