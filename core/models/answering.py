"""The answering model of the settings, whichever kind it is: the bundled span model's kind, or an encoder-decoder."""

from __future__ import annotations

import json
from pathlib import Path

from core.errors import CheckpointError
from core.models.checkpoints import BUNDLED, find_checkpoint
from core.types import BatchAnsweringModel


def is_span_model(name: str) -> bool:
    """True for "default" and for a folder of a span model; False for encoder-decoder folders and hub names."""
    if name == "default":
        return True
    for folder in (BUNDLED / name, Path(name).expanduser()):
        try:
            kind = json.loads((folder / "config.json").read_text()).get("kind")
        except (OSError, ValueError, AttributeError):
            continue
        return bool(kind == "span")
    return False


def load_answering(name: str = "default", device: str = "auto") -> tuple[BatchAnsweringModel, str]:
    """(answering model, digest of its weights).  Raises CheckpointError."""
    if is_span_model(name):
        from core.models.span_answerer import load_answerer

        return load_answerer(name, device)
    from core.models.fid import load_fid

    return load_fid(name, device)


def find_answering(name: str) -> None:
    """Looks for the files of an answering model without loading them.  Raises CheckpointError."""
    if is_span_model(name):
        find_checkpoint(name, "answerer")
        return
    from core.models.fid import find_fid

    try:
        find_fid(name)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; the bundled answering model is named 'default'") from None
