"""Reads and writes the weights of a checkpoint, `model.safetensors`.

Weights are stored in half precision; embeddings of the base are frozen in training and left out.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save

from core import disk
from core.errors import CheckpointError
from core.models.loading.finding import WEIGHTS

TICK_NS = 2_000_000_000  # coarser than the time stamps of any file system in use (FAT: 2 s)


def save_weights(weights: Mapping[str, torch.Tensor], folder: Path, config: dict[str, Any]) -> None:
    """Writes weights in half precision, and config.json.  Files are replaced atomically, so that a kill leaves the old ones.  Raises StorageError."""
    tensors = {name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in weights.items()}
    disk.write_bytes(folder / WEIGHTS, save(tensors, metadata={"format": "pt"}))
    disk.write_text(folder / "config.json", json.dumps(config, indent=1) + "\n")


Stamp = tuple[int, int, int]  # time in ns, size in bytes, inode: changes with the content or when a file is replaced
_DIGESTS: dict[Path, tuple[Stamp, str]] = {}


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of a folder, in single precision.  Raises OSError or SafetensorError."""
    return {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}


def digest(folder: Path) -> str:
    """The first 16 hex digits of the weights' sha256, which a prediction stores.  Raises CheckpointError.

    The digest is cached until the file's stamp changes; a file written within the clock's last tick is not cached, because another
    write could have the same stamp.
    """
    path = folder / WEIGHTS
    try:
        stamp = _stamp(path)
        cached = _DIGESTS.get(path)
        if cached is not None and cached[0] == stamp:
            return cached[1]
        with path.open("rb") as file:
            sha = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        if _stamp(path) == stamp and time.time_ns() - stamp[0] > TICK_NS:
            _DIGESTS[path] = stamp, sha
    except OSError as error:
        raise CheckpointError(f"checkpoint {folder} is incomplete: {WEIGHTS} cannot be read ({error.strerror})") from None
    return sha


def _stamp(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
