"""Freezes lower encoder layers, which makes the backward pass shorter."""

from __future__ import annotations

from typing import Any

from core.errors import InputError
from core.models.seq2seq.small import SmallSeq2Seq, with_own_encoder
from core.models.span.network import SpanNetwork


def freeze(network: Any, layers: int) -> None:
    """Freezes the `layers` lowest encoder layers of a network over MiniLM.  Two of six save a fifth of a step's time.

    If one of a shared encoder's layers is trained, the network gets an encoder of its own.  Raises InputError.
    """
    if isinstance(network, SmallSeq2Seq) and layers < len(network.encoder.encoder.layer):  # type: ignore[union-attr, arg-type]
        with_own_encoder(network)
    if not layers:
        return
    if not isinstance(network, (SmallSeq2Seq, SpanNetwork)):
        raise InputError("--freeze is for the networks over MiniLM, not for T5 and other encoder-decoders")
    encoder: Any = network.encoder
    own = encoder.encoder.layer
    if not 0 <= layers <= len(own):
        raise InputError(f"--freeze is {layers}; the encoder has {len(own)} layers")
    for layer in own[:layers]:
        layer.requires_grad_(False)
