"""Reduces the part of an encoder that is trained.  Freezing lower layers shortens the backward pass; training low-rank
differences only suits few questions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from core.errors import InputError
from core.models.encoders.low_rank import adapt, merge
from core.models.seq2seq.small import SmallSeq2Seq, with_own_encoder
from core.models.span.network import SpanNetwork


def freeze(network: Any, layers: int) -> None:
    """Freezes the `layers` lowest encoder layers of a network over MiniLM. Two of six save a fifth of a step's time.

    If one of a shared encoder's layers is trained, the network gets an encoder of its own.  Raises InputError.
    """
    if isinstance(network, SmallSeq2Seq) and layers < len(network.encoder.encoder.layer):  # type: ignore[union-attr, arg-type]
        with_own_encoder(network)
    if not layers:
        return
    if not isinstance(network, (SmallSeq2Seq, SpanNetwork)):
        raise InputError("--freeze is for the networks over MiniLM, not for T5 and other encoder-decoders")
    encoder: Any = network.encoder
    encoder_layers = encoder.encoder.layer
    if not 0 <= layers <= len(encoder_layers):
        raise InputError(f"--freeze is {layers}; the encoder has {len(encoder_layers)} layers")
    for layer in encoder_layers[:layers]:
        layer.requires_grad_(False)


def low_rank(network: SpanNetwork, rank: int, freeze: int = 0) -> None:
    """Trains only low-rank differences of the encoder above `freeze` layers, unless `rank` is 0 or the network has differences
    of its own.  The head is trained as usual."""
    if rank and not network.config.rank:
        encoder: Any = network.encoder
        adapt(encoder, len(encoder.encoder.layer) - freeze, rank)


def merged(network: SpanNetwork) -> SpanNetwork:
    """A copy with the differences merged into the matrices, as every checkpoint has them.  Returns the network itself if it has
    none, or if its checkpoint stores them (`SpanConfig.rank`)."""
    if network.config.rank or not any(name.endswith(".down") for name in network.state_dict()):
        return network
    copy = deepcopy(network)
    encoder: Any = copy.encoder
    merge(encoder, len(encoder.encoder.layer))
    return copy
