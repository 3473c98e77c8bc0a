"""Loads the answering model of the settings: a span model or an encoder-decoder."""

from __future__ import annotations

from core.models.loading.finding import is_span_model
from core.types import BatchAnsweringModel


def load_answering(name: str = "default", device: str = "auto") -> tuple[BatchAnsweringModel, str]:
    """(answering model, digest of its weights).  Raises CheckpointError."""
    if is_span_model(name):
        from core.models.span.answerer import load_answerer

        return load_answerer(name, device)
    from core.models.seq2seq.fid import load_fid

    return load_fid(name, device)
