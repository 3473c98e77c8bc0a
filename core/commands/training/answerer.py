"""`python -m core train answerer`: the answering model with a span head, in AmbigPrompt's two stages."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.cluster.connect import add_option, connected
from core.commands.training import options
from core.commands.training.reader import reader_task, span_network
from core.commands.training.runs import Made, miner, say, train_network
from core.errors import InputError
from core.settings import Settings

if TYPE_CHECKING:
    from core.models.span.network import SpanConfig
    from core.training.answerer import AnswererTask, JointTask

ABOUT = "the answering model of ambiscope and ambigprompt"
DATA = ("reading", "reading-dev", "multi", "multi-dev", "annotated", "ambignq", "passages")
LIMIT = "maximum number of questions from --reading (default: 4000; 6000 with --stage pretrain)"
READER = "with --stage pretrain, the reader that makes the pseudo answers"


def add_options(parser: argparse.ArgumentParser) -> None:
    options.data(parser, *DATA, limit=LIMIT)
    options.stage(parser)
    options.start_from(parser, "checkpoint to start from: a folder or a bundled name (default: the untrained base)", READER)
    options.prompting(parser)
    options.freeze(parser)
    options.adapted_base(parser)
    options.exclude(parser)
    options.context(parser)
    options.eoi_share(parser)
    options.network(parser)
    add_option(parser)


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Raises InputError if post-pretraining has no --reader, and for --ray with another stage."""
    check_stage(args)
    return train_network(args, settings, _make, _reranker_of(args))


def check_stage(args: argparse.Namespace) -> None:
    """Raises InputError for options that do not fit the stage."""
    if args.ray and args.stage != "pretrain":
        raise InputError("--ray spreads the pseudo answers of --stage pretrain; leave it out here")
    if args.stage == "pretrain" and not args.reader:
        raise InputError("--stage pretrain needs --reader CHECKPOINT: the reader that makes the pseudo answers (Eq. 8)")


def _make(args: argparse.Namespace, settings: Settings) -> Made:
    from core.models.span.checkpoints import save_span_network
    from core.training.freezing import low_rank, whole

    network = span_network(args)
    if args.init and not network.config.rank:  # a network that has low-rank updates trains those
        low_rank(network, args.rank, args.freeze)

    def save(trained: Any, folder: Path, about: dict[str, Any]) -> None:
        save_span_network(whole(trained), folder, about)

    return network, build_task(args, settings, network.config), save


def build_task(args: argparse.Namespace, settings: Settings, config: SpanConfig) -> AnswererTask | JointTask:
    """The task, with pseudo answers from the cluster of --ray where one is named."""
    from core.training.answerer import JointTask, build

    with connected(args.ray, settings) as cluster:
        elsewhere = None
        if cluster is not None:
            from core.cluster.jobs import reading

            elsewhere = reading(cluster, args.reader)
        task = build(args, settings, config, miner, say, elsewhere)
    return JointTask(task, reader_task(args, settings, config)) if args.stage == "joint" else task


def _reranker_of(args: argparse.Namespace) -> Callable[[Path], object] | None:
    """The rerankers of the initial weights, which fine-tuned weights keep: without them they would be worse."""
    if args.stage != "tune" or not args.init:
        return None
    from core.models.loading.finding import find_checkpoint
    from core.models.ranking.reranker import KINDS, read_weights, write_weights
    from core.systems import SYSTEMS

    folder = find_checkpoint(args.init, "answerer")
    found = {(kind, name): own for name in SYSTEMS for kind in KINDS if (own := read_weights(folder, kind, name))}

    def keep(out: Path) -> None:
        for (kind, name), own in found.items():
            write_weights(out, own, kind, name)

    return keep if found else None
