"""`python -m core train TARGET`: trains or fits one part of the bundled systems.

A target is a module of core.commands.training with its own options.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from core.commands.training.options import check_numbers
from core.commands.training.runs import check_files
from core.settings import Settings

# target -> its module in core.commands.training, with ABOUT, add_options(parser) and run(args, settings)
TARGETS = {
    "reader": "reader",
    "answerer": "answerer",
    "seq2seq": "seq2seq",
    "disambiguation": "disambiguation",
    "verifier": "verifier",
    "reranker": "reranker",
    "signals": "signals",
    "calibration": "calibration",
    "ambiguity": "ambiguity",
    "retriever": "retrieval.retriever",
    "passages": "retrieval.passages",
}


def add_parser(commands: Any) -> None:
    train = commands.add_parser("train", help="train a part of the systems, such as the reader, the answerer or the reranker")
    targets = train.add_subparsers(dest="typed", required=True, metavar="TARGET")
    for name in TARGETS:
        module = _module(name)
        one = targets.add_parser(
            name,
            help=module.ABOUT,
            description=f"Trains {module.ABOUT}.",
        )
        module.add_options(one)
        one.set_defaults(run=run, what=name)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError for numbers out of bounds, missing files, and data that must not be trained on; otherwise as
    the target's `run`.
    """
    check_numbers(args)
    check_files(args, settings)
    return int(_module(args.what).run(args, settings))


def _module(target: str) -> Any:
    return importlib.import_module(f"core.commands.training.{TARGETS[target]}")
