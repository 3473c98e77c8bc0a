"""`python -m core train cotraining`: co-training (core.training.cotraining) of the span answering model.

Full data: --multi, --annotated and --ambignq (as statements).  Partial data: --reading, each question over its own passage and neighbours.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from core.datasets.excluded import excluded_questions
from core.models.loading.finding import find_checkpoint
from core.models.span.answerer import SpanAnswerer
from core.models.span.checkpoints import load_span_network, save_span_network
from core.models.span.network import Prompting
from core.settings import Settings
from core.training.answerer import HELD_OUT, AnswererTask, single_examples
from core.training.cotraining import CoTraining, cotrain
from core.training.data import mixtures
from core.training.data.examples import MultiExample
from core.training.freezing import freeze
from core.training.options import CoTrainingOptions, TrainConfig
from core.training.runs import arguments_of, identity, miner, say
from core.training.trainer import check_settings, fit

PARTIAL_QUESTIONS = 2000  # single-answer questions that are labelled, where --limit says nothing


@dataclass(frozen=True)
class TrainSpan:
    """A core.training.cotraining.Train that tunes the span answering model from one checkpoint.  `arguments` are recorded in
    the checkpoints."""

    init: Path
    config: TrainConfig
    held_out: Sequence[tuple[str, Sequence[MultiExample]]]
    context: int
    eoi_share: float
    batch_tokens: int
    log: Callable[[str], None]
    arguments: dict[str, Any] = field(default_factory=dict)
    prompting: Prompting | None = None  # None: that of the checkpoint
    frozen_layers: int = 0

    def __call__(self, examples: Sequence[MultiExample], seed: int, folder: Path) -> tuple[SpanAnswerer, float]:
        finished, config = folder / "last" / "config.json", replace(self.config, seed=seed)
        identity = {"examples": len(examples)}
        if finished.exists():
            check_settings(folder, {**asdict(config), "identity": identity})
        else:
            network = load_span_network(self.init, self.prompting, merge=False)
            freeze(network, self.frozen_layers)
            task = AnswererTask(
                [(examples, 1.0)], self.held_out, network.config, "tune", self.context, self.eoi_share, self.batch_tokens
            )

            def save(network: Any, path: Path, row: dict[str, Any]) -> None:
                save_span_network(network, path, {"arguments": self.arguments, "figures": row})

            fit(network, task, config, folder, save, self.log, identity)
        figure = json.loads(finished.read_text())["about"]["figures"].get("figure", 0.0)
        return SpanAnswerer(load_span_network(folder / "last"), self.config.device), float(figure)


def run(options: CoTrainingOptions, settings: Settings, out: Path) -> dict[str, Any]:
    """Runs co-training and returns its result (core.training.cotraining.cotrain).  Raises InputError, CheckpointError."""
    plan = CoTraining(options.models, options.rounds, seed=options.seed)
    excluded = excluded_questions(options.exclude)
    reading = excluded.without(mixtures.load_reading(options.reading, seed=options.seed))
    index = miner(options, settings, reading)
    annotated, held_out = mixtures.load_annotated(options.annotated, random.Random(options.seed), HELD_OUT)
    full = mixtures.load_multi(options.multi) + annotated
    if options.ambignq:
        full += mixtures.statement_examples(options.ambignq, index, options.context, options.seed)
    partial = single_examples(reading, index, options.context, options.limit or PARTIAL_QUESTIONS, options.seed)
    config = replace(TrainConfig(**{f.name: getattr(options, f.name) for f in fields(TrainConfig)}), device=settings.device)
    train_span = TrainSpan(
        find_checkpoint(options.init or "default", "answerer"),
        config,
        held_out,
        options.context,
        options.eoi_share,
        options.batch_tokens,
        say,
        arguments_of("cotraining", options),
        options.prompting,
        options.freeze,
    )
    judged = [example for _, examples in held_out for example in examples]
    return cotrain(excluded.without(full), partial, train_span, plan, out, say, identity("cotraining", options), judged)
