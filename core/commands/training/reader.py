"""`python -m core train reader`: the per-passage reader."""

from __future__ import annotations

import argparse
import random
from typing import Any

from core.commands.training import options
from core.commands.training.runs import Made, miner, say, train_network
from core.errors import InputError
from core.settings import Settings

ABOUT = "the per-passage reader"

# passages without an answer that the reader is shown of each question with several: all of them would be nine tenths of its rows
EMPTY = 2
# MPNet reads whole passages of documentation, whose answers (paths, commands) have many word pieces
SIZES = {"mpnet": {"max_tokens": 256, "max_answer_tokens": 24}}
HELD_OUT_ROWS = 1_500  # of the annotated folders: reading them all would take minutes at each evaluation


def add_options(parser: argparse.ArgumentParser) -> None:
    limit = "at most this many rows of --reading, drawn at random (default: %(default)s, all)"
    options.data(parser, "reading", "reading-dev", "multi", "annotated", "ambignq", "passages", limit=limit)
    options.start_from(parser, "checkpoint to start from: a folder or a bundled name (default: the untrained base)")
    options.prompting(parser)
    options.freeze(parser)
    options.adapted_base(parser)
    options.exclude(parser)
    options.network(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without --reading."""
    if not args.reading:  # before anything is loaded
        raise InputError("train reader needs --reading FILE")
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.span.checkpoints import save_span_network

    network = span_network(args)
    return network, reader_task(args, settings, network.config), save_span_network


def span_network(args: argparse.Namespace) -> Any:
    """The span model to train, with its lower layers frozen: that of --init, or a new one over the base.

    Raises CheckpointError.
    """
    from core.models.loading.finding import find_checkpoint
    from core.models.span.checkpoints import load_span_network
    from core.models.span.model import load_base
    from core.models.span.network import SpanConfig, SpanNetwork
    from core.training.freezing import freeze

    if args.init:
        network = load_span_network(find_checkpoint(args.init, args.what), args.prompting, merge=False)
    else:
        span = SpanConfig(base=args.base, rank=args.rank, prompting=args.prompting, **SIZES.get(args.base, {}))
        network = SpanNetwork(load_base(span.base), span)
    freeze(network, args.freeze)
    return network


def reader_task(args: argparse.Namespace, settings: Settings, config: Any) -> Any:
    """The ReaderTask of the command line's arguments.  Raises InputError, FormatError."""
    from core.training.data import mixtures
    from core.training.data.examples import Reading
    from core.training.data.excluded import excluded_questions
    from core.training.reader import ReaderTask

    excluded = excluded_questions(args.exclude)
    reading = excluded.without(mixtures.load_reading(args.reading, seed=args.seed))
    if args.limit:
        reading = random.Random(args.seed).sample(reading, min(args.limit, len(reading)))
    index, cache = miner(args, settings, reading)
    single = mixtures.reader_rows(reading, index, cache, args.seed, say)
    multi = mixtures.reader_rows_of_multi(excluded.without(mixtures.load_multi(args.multi)), args.seed, EMPTY)
    statements: list[Reading] = []
    if args.ambignq:
        stated = mixtures.statement_examples(args.ambignq, index, cache, context=2, seed=args.seed)
        statements = mixtures.reader_rows_of_multi(excluded.without(stated))
    annotated: list[Reading] = []
    held: list[Reading] = []
    for folder in args.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2)
        train = excluded.without(train)
        annotated += mixtures.reader_rows_of_multi(train, args.seed, EMPTY)
        annotated += mixtures.reader_rows_of_multi(mixtures.clarified_examples(train), args.seed, EMPTY)
        held += mixtures.reader_rows_of_multi(dev)
    rng = random.Random(args.seed)
    rows = mixtures.in_shares([(single, 0.45), (multi, 0.2), (annotated, 0.25), (statements, 0.1)], rng)
    dev_reading = mixtures.load_reading(args.reading_dev, keep={})
    dev_reading = rng.sample(dev_reading, min(400, len(dev_reading)))
    held = rng.sample(held, min(HELD_OUT_ROWS, len(held))) + mixtures.reader_rows(dev_reading, index, cache, args.seed, say)
    say(f"{len(rows)} training rows ({sum(not r.answers for r in rows)} without an answer), {len(held)} held out")
    return ReaderTask(rows, held, config, args.batch_tokens)
