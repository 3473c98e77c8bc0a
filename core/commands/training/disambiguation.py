"""`python -m core train disambiguation`: an encoder-decoder that writes disambiguated questions."""

from __future__ import annotations

import argparse

from core.commands.training import options
from core.commands.training.runs import Made, miner, say, train_network
from core.commands.training.seq2seq import INIT
from core.settings import Settings

ABOUT = "an encoder-decoder that writes disambiguated questions (clarifier=seq2seq)"


def add_options(parser: argparse.ArgumentParser) -> None:
    texts = {"reading": "JSONL(.gz) files whose passages are searched for context beside --passages"}
    options.data(parser, "ambignq", "annotated", "passages", "reading", **texts)
    options.start_from(parser, INIT)
    options.prompting(parser)
    options.freeze(parser)
    options.repeat(parser)
    options.context(parser)
    options.network(parser, "learning rate of the encoder of a small network; other encoder-decoders learn at --head-lr")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without training questions or without --init."""
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.training.disambiguation import build

    return build(args, miner, settings, say)
