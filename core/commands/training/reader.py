"""`python -m core train reader`: the per-passage reader."""

from __future__ import annotations

import random
from typing import Any

from core.datasets.excluded import excluded_questions
from core.models.encoders.base import load_base
from core.models.loading.finding import find_checkpoint
from core.models.span.checkpoints import load_span_network, save_span_network
from core.models.span.network import SpanConfig, SpanNetwork
from core.settings import Settings
from core.training.data import mixtures
from core.training.data.absent import absent_sources
from core.training.data.examples import MultiExample, ReadingRow
from core.training.freezing import freeze
from core.training.options import AnswererOptions, ReaderOptions
from core.training.reader import ReaderTask
from core.training.runs import TrainingParts, miner, say

# passages without an answer that the reader is shown of each question with several: all of them would be nine tenths of its rows
EMPTY_PASSAGES = 2
# MPNet reads whole passages of documentation, whose answers (paths, commands) have many word pieces
SIZES: dict[str, Any] = {"mpnet": {"max_tokens": 256, "max_answer_tokens": 24}}
HELD_OUT_ROWS = 1_500  # of the annotated folders: reading them all would take minutes at each evaluation


def make(options: ReaderOptions, settings: Settings) -> TrainingParts:
    """Builds the reader's task.  Raises InputError, FormatError, CheckpointError."""
    network = span_network(options, "reader")
    return network, reader_task(options, settings, network.config), save_span_network


def span_network(options: ReaderOptions | AnswererOptions, kind: str) -> SpanNetwork:
    """The span model to train, with its lower layers frozen: that of --init, or a new one over the base.

    Raises CheckpointError.
    """
    if options.init:
        network = load_span_network(find_checkpoint(options.init, kind), options.prompting, merge=False)
    else:
        span = SpanConfig(base=options.base, rank=options.rank, prompting=options.prompting, **SIZES.get(options.base, {}))
        network = SpanNetwork(load_base(span.base), span)
    freeze(network, options.freeze)
    return network


def reader_task(options: ReaderOptions | AnswererOptions, settings: Settings, config: SpanConfig) -> ReaderTask:
    """Builds the task over a given network.  Raises InputError, FormatError."""
    seed = options.seed
    excluded = excluded_questions(options.exclude)
    reading = excluded.without(mixtures.load_reading(options.reading, seed=seed))
    if options.limit:
        reading = random.Random(seed).sample(reading, min(options.limit, len(reading)))
    index = miner(options, settings, reading)
    single = mixtures.reader_rows(reading, index, seed, say)
    several = excluded.without(mixtures.load_multi(options.multi))
    multi = mixtures.reader_rows_of_multi(several, seed, EMPTY_PASSAGES)
    statements: list[ReadingRow] = []
    if options.ambignq:
        examples = mixtures.statement_examples(options.ambignq, index, context=2, seed=seed)
        statements = mixtures.reader_rows_of_multi(excluded.without(examples))
    annotated: list[ReadingRow] = []
    held_out: list[ReadingRow] = []
    with_support: list[MultiExample] = []
    for folder in options.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2, context=mixtures.SEARCHED_PASSAGES)
        train = excluded.without(train)
        with_support += train
        annotated += mixtures.reader_rows_of_multi(train, seed, EMPTY_PASSAGES)
        annotated += mixtures.reader_rows_of_multi(mixtures.clarified_examples(train), seed, EMPTY_PASSAGES)
        held_out += mixtures.reader_rows_of_multi(dev)
    absent, absent_in_manuals = (
        mixtures.reader_rows_of_multi(examples, seed, EMPTY_PASSAGES)
        for examples in absent_sources(with_support, several, seed)
    )
    rng = random.Random(seed)
    rows = mixtures.in_shares(
        [(single, 0.45), (multi, 0.2), (annotated, 0.25), (statements, 0.1), (absent, 0.08), (absent_in_manuals, 0.03)], rng
    )
    dev_reading = mixtures.load_reading(options.reading_dev, keep={})
    dev_reading = rng.sample(dev_reading, min(400, len(dev_reading)))
    held_out = rng.sample(held_out, min(HELD_OUT_ROWS, len(held_out)))
    held_out += mixtures.reader_rows(dev_reading, index, seed, say)
    say(f"{len(rows)} training rows ({sum(not r.answers for r in rows)} without an answer), {len(held_out)} held out")
    return ReaderTask(rows, held_out, config, options.batch_tokens)
