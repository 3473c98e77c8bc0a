"""`python -m core train verifier`: a model over MPNet that judges single candidates."""

from __future__ import annotations

import argparse
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.commands.training import options
from core.commands.training.runs import Made, miner, say, train_network
from core.errors import InputError
from core.settings import Settings

ABOUT = "the verifier, which decides whether the evidence supports a candidate"

CLARIFIED = 0.5  # disambiguated questions of --annotated, for each of its prompt questions
HELD_OUT = 180  # annotated questions, for the figure


def add_options(parser: argparse.ArgumentParser) -> None:
    limit = "at most this many rows of --reading, drawn at random (default: %(default)s, all)"
    options.data(parser, "reading", "multi", "annotated", "passages", limit=limit)
    init = "verifier to start from: a folder, or default for the bundled one (default: a new one)"
    options.start_from(parser, init, "reader whose other spans are the wrong candidates (default: AMBISCOPE_READER)")
    options.network(parser, "learning rate of the low-rank differences")


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError without questions, CheckpointError."""
    if not (args.reading or args.annotated or args.multi):
        raise InputError("train verifier needs --reading FILE, --annotated FOLDER or --multi FILE")
    return train_network(args, settings, _make)


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.encoders.mpnet import load_mpnet
    from core.models.encoders.packaged import packaged_folder
    from core.models.encoders.word_pieces import WordPieces
    from core.models.loading.files import save_weights
    from core.models.loading.finding import find_verifier
    from core.models.ranking.verifier import load_verifier_network
    from core.models.ranking.verifier_network import VerifierConfig, VerifierNetwork
    from core.models.scheduling.device import bf16_autocast, pick_device
    from core.models.span.reader import load_reader
    from core.training.data.verifier_examples import mine
    from core.training.verifier import VerifierTask

    config = VerifierConfig()
    base = packaged_folder(config.base)
    network = load_verifier_network(find_verifier(args.init), base) if args.init else VerifierNetwork(load_mpnet(base), config)
    reader, _ = load_reader(args.reader or settings.reader, settings.device)
    asked, held = _questions(args, settings)
    say(f"{len(asked)} questions, {len(held)} held out")
    with bf16_autocast(pick_device(settings.device)):  # only which wrong spans are taken depends on it
        found, kept_back = (mine(part, reader, config.window_words, say) for part in (asked, held))
    task = VerifierTask(found, kept_back, WordPieces(base), config, args.batch_tokens)

    def save(network: Any, folder: Path, about: dict[str, Any]) -> None:
        save_weights(network.trained(), folder, {"kind": "verifier", "config": asdict(network.config), "about": about})

    return network, task, save


def _questions(args: argparse.Namespace, settings: Settings) -> tuple[list[Any], list[Any]]:
    """(training, held-out) questions in random order; --limit restricts the rows of --reading."""
    from core.training.data import mixtures
    from core.training.data.verifier_examples import of_multi, of_reading

    rng = random.Random(args.seed)
    asked: list[Any] = []
    held: list[Any] = []
    if args.reading:
        reading = mixtures.load_reading(args.reading, seed=args.seed)
        if args.limit:
            reading = rng.sample(reading, min(args.limit, len(reading)))
        index, cache = miner(args, settings, reading)
        asked += [of_reading(row) for row in mixtures.reader_rows(reading, index, cache, args.seed, say)]
    for folder in args.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2)
        clarified = mixtures.clarified_examples(train)
        rng.shuffle(clarified)
        asked += [of_multi(e) for e in [*train, *clarified[: int(CLARIFIED * len(train))]]]
        held += [of_multi(e) for e in rng.sample(dev, min(HELD_OUT // len(args.annotated), len(dev)))]
    asked += [of_multi(e) for e in mixtures.load_multi(args.multi) if e.gold]
    rng.shuffle(asked)
    return asked, held
