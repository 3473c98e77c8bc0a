"""`python -m core train answerer` and `seq2seq`: the answering models, in AmbigPrompt's two stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.cluster.connect import connected
from core.cluster.jobs import reading
from core.commands.training.reader import reader_task, span_network
from core.models.span.checkpoints import save_span_network
from core.models.span.network import SpanConfig
from core.settings import Settings
from core.training import seq2seq
from core.training.answerer import AnswererTask, JointTask, build
from core.training.fid import FidTask
from core.training.freezing import low_rank, merged
from core.training.options import AnswererOptions, Seq2SeqOptions
from core.training.runs import TrainingParts


def make(options: AnswererOptions, settings: Settings) -> TrainingParts:
    """Builds the answering model's task.  Raises InputError, FormatError, CheckpointError, ClusterError."""
    network = span_network(options, "answerer")
    if options.init:
        low_rank(network, options.rank, options.freeze)

    def save(trained: Any, folder: Path, details: dict[str, Any]) -> None:
        save_span_network(merged(trained), folder, details)

    task = _task(options, settings, network.config)
    return network, JointTask(task, reader_task(options, settings, network.config)) if options.is_joint else task, save


def make_seq2seq(options: Seq2SeqOptions, settings: Settings) -> TrainingParts:
    """Builds the encoder-decoder's task.  Raises InputError, FormatError, CheckpointError, ClusterError."""
    network, tokenizer = seq2seq.network_of(options, options.target)
    examples = _task(options, settings, SpanConfig())  # its examples are used
    task = FidTask(
        examples.sources,
        examples.held_out,
        tokenizer,
        network.config,
        "pretrain" if options.pretrains else "tune",
        options.context,
        options.eoi_share,
        options.batch_tokens,
        target=options.target,
        joined_share=options.joined,
        collate=network.collate,
        repeat=options.repeat,
    )
    return network, task, seq2seq.saver(network, tokenizer)


def _task(options: Any, settings: Settings, config: SpanConfig) -> AnswererTask:
    """The task, with pseudo answers from the cluster that --ray names, if any."""
    with connected(options.ray, settings) as cluster:
        elsewhere = None if cluster is None else reading(cluster, options.reader)
        return build(options, settings, config, elsewhere)
