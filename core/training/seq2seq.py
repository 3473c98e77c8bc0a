"""`python -m core train seq2seq`: the network and its training data.

The network is a transformers encoder-decoder (a folder or hub name such as t5-base), one that was trained here before, or a new small one.  `small` starts
from the base's encoder, `small:CHECKPOINT` from that of a trained reader or answerer (core.models.seq2seq.small).  If all layers are frozen, the encoder
stays that of the bundled model, and the checkpoint holds only the decoder.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from core.errors import InputError
from core.models.loading.files import digest
from core.models.loading.finding import BUNDLED, find_checkpoint
from core.models.seq2seq.fid import load_network, save_fid
from core.models.seq2seq.network import FidConfig
from core.models.seq2seq.small import SmallConfig, SmallSeq2Seq, from_span, make_small, save_small
from core.models.span.checkpoints import load_span_network
from core.training.freezing import freeze
from core.training.options import DisambiguationOptions, Seq2SeqOptions

SMALL = "small"


def network_of(options: Seq2SeqOptions | DisambiguationOptions, target: Any) -> tuple[Any, Any]:
    """The (network, tokenizer) to train, with its lower layers frozen.  Raises InputError, CheckpointError."""
    network, tokenizer = start(str(options.init), options.prompting, target, options.seed)
    freeze(network, options.freeze)
    check_repeat(network, options.repeat)
    return network, tokenizer


def start(init: str, prompting: Any, target: Any, seed: int) -> tuple[Any, Any]:
    """The (network, tokenizer) to start from.  Raises InputError, CheckpointError."""
    name, _, encoder = init.partition(":")
    if name == SMALL and not (BUNDLED / name).exists():
        try:
            config = SmallConfig(prompting=prompting, target=target)
        except ValueError as error:
            raise InputError(str(error)) from None
        if not encoder:
            return make_small(config, seed=seed)
        folder = find_checkpoint(encoder, encoder)
        if folder.parent == BUNDLED:
            config = replace(config, encoder=folder.name, encoder_digest=digest(folder))
        return from_span(load_span_network(folder), config, seed)
    network, tokenizer = load_network(init)
    # weights of the authors' code are trained on with the paper's attention, as everything here
    paper = {"attention": "paper"} if isinstance(network.config, FidConfig) else {}
    network_config = replace(network.config, prompting=prompting, target=target, **paper)
    return (network, tokenizer) if network_config == network.config else load_network(init, network_config)


def check_repeat(network: Any, repeat: int) -> None:
    """Raises InputError if outputs would be kept of an encoder that is being trained."""
    layers = (p for name, p in network.named_parameters() if name.startswith("encoder.") and ".embeddings." not in name)
    if repeat and (not isinstance(network, SmallSeq2Seq) or any(p.requires_grad for p in layers)):
        raise InputError(
            "--repeat keeps the encoder's states, so all its layers must be frozen: use a small network with --freeze 6"
        )


def saver(network: Any, tokenizer: Any) -> Any:
    """The function that `fit` calls to write this network's weights: (network, folder, about)."""
    return save_small if isinstance(network, SmallSeq2Seq) else partial(save_fid, tokenizer=tokenizer)
