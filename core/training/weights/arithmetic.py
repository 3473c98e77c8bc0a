"""What averaging and merging share: checks, reading and writing checkpoint folders, the command line."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core import disk
from core.errors import AmbiscopeError, CheckpointError, InputError
from core.models.loading.finding import WEIGHTS, read_config


def check_share(share: float) -> None:
    """Raises InputError for a share outside 0 to 1."""
    if not (math.isfinite(share) and 0 <= share <= 1):
        raise InputError(f"the share is {share}; it must be between 0 and 1")


def read(*folders: Path) -> list[dict[str, Any]]:
    """The tensors of each checkpoint, by name.  Raises CheckpointError."""
    from safetensors import SafetensorError

    from core.models.loading.files import read_weights

    try:
        return [read_weights(folder) for folder in folders]
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"weights cannot be read ({error}); give folders with {WEIGHTS}") from None


def write(out: Path, tensors: Mapping[str, Any], like: Path, what: str, how: Mapping[str, Any]) -> None:
    """Writes tensors with the config.json of `like`, which then says `what` was done and `how`.

    Raises CheckpointError before anything is written, StorageError.
    """
    from safetensors.torch import save

    config = read_config(like)
    config.setdefault("about", {})[what] = dict(how)
    disk.write_bytes(out / WEIGHTS, save(dict(tensors)))
    disk.write_text(out / "config.json", json.dumps(config, indent=1))


def command(about: str | None, folders: Sequence[str], share: float, run: Callable[[argparse.Namespace], str]) -> int:
    """Runs a command line with one option for each folder, `--share` and `--out`, and returns its exit code.

    `about`: its description.  `run`: does the work and returns what was done, in words.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (*folders, "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--share", type=float, default=share, help="of --after")
    args = parser.parse_args()
    try:
        print(f"{run(args)}: {args.out}")
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
