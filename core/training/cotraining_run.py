"""`python -m core train cotraining`: co-training (core.training.cotraining) of the span answering model.

Full data: --multi, --annotated and --ambignq (as statements).  Partial data: --reading, each question over its own
passage and neighbours.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.models.loading.finding import find_checkpoint
from core.models.span.answerer import SpanAnswerer
from core.models.span.checkpoints import load_span_network, save_span_network
from core.settings import Settings
from core.training.answerer import HELD_OUT, AnswererTask, single_examples
from core.training.cotraining import CoTraining, cotrain
from core.training.data import mixtures
from core.training.data.examples import MultiExample
from core.training.trainer import TrainConfig, fit

PARTIAL = 2000  # single-answer questions that are labelled, where --limit says nothing


class TrainSpan:
    """A core.training.cotraining.Train: tunes the span answering model from one checkpoint."""

    def __init__(
        self,
        init: str,
        config: TrainConfig,
        held_out: Sequence[tuple[str, Sequence[MultiExample]]],
        context: int,
        eoi_share: float,
        batch_tokens: int,
        log: Callable[[str], None],
        about: dict[str, Any] | None = None,
    ) -> None:
        self.init, self.config, self.held_out, self.log = find_checkpoint(init, "answerer"), config, held_out, log
        self.context, self.eoi_share, self.batch_tokens, self.about = context, eoi_share, batch_tokens, about or {}

    def __call__(self, examples: Sequence[MultiExample], seed: int, folder: Path) -> tuple[SpanAnswerer, float]:
        done = folder / "last" / "config.json"
        if not done.exists():
            network = load_span_network(self.init)
            task = AnswererTask(
                [(examples, 1.0)], self.held_out, network.config, "tune", self.context, self.eoi_share, self.batch_tokens
            )

            def save(network: Any, where: Path, row: dict[str, Any]) -> None:
                save_span_network(network, where, {"arguments": self.about, "figures": row})

            fit(network, task, replace(self.config, seed=seed), folder, save, self.log, {"examples": len(examples)})
        figure = json.loads(done.read_text())["about"]["figures"].get("figure", 0.0)
        return SpanAnswerer(load_span_network(folder / "last"), self.config.device), float(figure)


def run(
    args: argparse.Namespace,
    settings: Settings,
    config: TrainConfig,
    out: Path,
    make_miner: Callable[..., tuple[Any, Path]],
    log: Callable[[str], None],
    identity: dict[str, Any],
    about: dict[str, Any],
) -> dict[str, Any]:
    """Runs co-training and returns its result (core.training.cotraining.cotrain).  Raises InputError,
    CheckpointError.
    """
    if not args.reading:
        raise InputError("train cotraining needs --reading FILE: the single-answer questions that are completed")
    plan = CoTraining(args.models, args.rounds, seed=args.seed)
    reading = mixtures.load_reading(args.reading, seed=args.seed)
    miner, cache = make_miner(args, settings, reading)
    full = mixtures.load_multi(args.multi)
    held: list[tuple[str, list[MultiExample]]] = []
    rng = random.Random(args.seed)
    for folder in args.annotated:
        train, dev = mixtures.annotated_examples(folder, held_out=0.2)
        full += train
        held.append((folder.name, rng.sample(dev, min(HELD_OUT, len(dev)))))
    if args.ambignq:
        full += mixtures.statement_examples(args.ambignq, miner, cache, args.context, args.seed)
    partial = single_examples(reading, miner, cache, args.context, args.limit or PARTIAL, args.seed, log)
    train_span = TrainSpan(args.init or "default", config, held, args.context, args.eoi_share, args.batch_tokens, log, about)
    return cotrain(full, partial, train_span, plan, out, log, identity)
