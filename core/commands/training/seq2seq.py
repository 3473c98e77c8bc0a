"""`python -m core train seq2seq`: an encoder-decoder that writes one answer per step, or a complete answer set."""

from __future__ import annotations

import argparse

from core.cluster.connect import add_option
from core.commands.training import options
from core.commands.training.answerer import DATA, LIMIT, READER, build_task, check_stage
from core.commands.training.runs import Made, train_network
from core.settings import Settings

ABOUT = "the answering model over an encoder-decoder (ambigprompt-seq2seq, fid, spanseqgen)"
INIT = "a folder or hub name of encoder-decoder weights (t5-base), `small` for a new small one, or `small:CHECKPOINT` for one over its encoder"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.data(parser, *DATA, limit=LIMIT)
    parser.add_argument(
        "--target",
        choices=["step", "spliced"],
        default=options.DEFAULTS["target"],
        help="one answer per step and [EOI] (ambigprompt-seq2seq), or the whole answer set at once (fid, spanseqgen) (default: %(default)s)",
    )
    parser.add_argument(
        "--joined",
        type=float,
        default=options.DEFAULTS["joined"],
        metavar="SHARE",
        help="with --target spliced, share of batches that read all passages as one row (default: %(default)s)",
    )
    options.stage(parser)
    options.start_from(parser, INIT, READER)
    options.prompting(parser)
    options.freeze(parser)
    options.repeat(parser)
    options.context(parser)
    options.eoi_share(parser)
    options.network(parser, "learning rate of the encoder of a small network; other encoder-decoders learn at --head-lr")
    add_option(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without --init."""
    from core.training import seq2seq

    seq2seq.check(args)
    check_stage(args)
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.span.network import SpanConfig
    from core.training import seq2seq

    return seq2seq.build(args, build_task(args, settings, SpanConfig()))
