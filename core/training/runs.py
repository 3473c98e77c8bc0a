"""Shared parts of the targets of `core train`: refused files, the identity of a run, and the training of a network."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from accelerate import PartialState

from core.disk import plain_or_gz
from core.errors import InputError
from core.models.loading.finding import named_folder
from core.models.loading.hub import is_name
from core.settings import Settings
from core.training.data.examples import ReadingExample
from core.training.data.mining import Miner
from core.training.data.mixtures import context_passages
from core.training.options import TrainConfig, TrainingOptions
from core.training.trainer import fit

STARTER_FILES = ("questions.json", "passages.tsv")
HELD_BACK = ("starter", "starter_test")  # below data/

TrainingParts = tuple[Any, Any, Callable[..., object]]  # (network, task, how to save)


def check_files(options: TrainingOptions, settings: Settings) -> None:
    """Raises InputError for a missing file and for evaluation-only data, even through a link or as a copy."""
    for path in _inputs(options, "files", "folders", "excluded"):
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
    trained_on = _inputs(options, "files", "folders")
    for path, folder in itertools.product(trained_on, (settings.starter_dir.with_name(name) for name in HELD_BACK)):
        is_copy = any(
            original.exists()
            and (f := plain_or_gz(path / original.name) if path.is_dir() else path).is_file()
            and _unpacked_start(f, original.stat().st_size + 1) == original.read_bytes()
            for original in (folder / name for name in STARTER_FILES)
        )
        if is_copy or folder.resolve() in (path.resolve(), path.resolve().parent):
            raise InputError(f"{path} contains data/{folder.name}, which must not be used for training")


def _inputs(options: TrainingOptions, *kinds: str) -> list[Path]:
    values = [getattr(options, f.name) for f in fields(options) if f.metadata.get("reads") in kinds]
    return [path for value in values if value for path in (value if isinstance(value, tuple) else [value])]


def _unpacked_start(path: Path, size: int) -> bytes:
    """At most `size` first bytes of a plain or gzipped file; b"" if it is damaged, which its reader reports."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _digest(path: Path) -> Any:
    """The size in bytes and the sha256 of a file's content.  For a folder, those of its questions and passages."""
    if path.is_dir():
        return [_digest(f) for name in STARTER_FILES if (f := plain_or_gz(path / name)).exists()]
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _weights(name: str) -> Any:
    """Digests of a checkpoint's files (bundled or a folder); a hub name identifies itself."""
    name = name.removeprefix("small:")  # a new decoder over this checkpoint's encoder
    if (is_name(name) and not Path(name).exists()) or (folder := named_folder(name)) is None:
        return name
    files = sorted(f for f in folder.iterdir() if f.suffix in (".json", ".safetensors", ".bin", ".model"))
    return {f.name: _digest(f) for f in files}


def identity(target: str, options: TrainConfig) -> dict[str, Any]:
    """The facts that identify a run besides its TrainConfig: options, and digests of the input files wherever they are."""
    out: dict[str, Any] = {"what": target}
    for name in sorted({f.name for f in fields(options)} - {f.name for f in fields(TrainConfig)} - {"out", "ray"}):
        value, reads = getattr(options, name), options.__dataclass_fields__[name].metadata["reads"]
        if value and reads == "checkpoint":
            value = _weights(value)
        elif value and reads:
            value = [_digest(path) for path in value] if isinstance(value, tuple) else _digest(value)
        out[name] = value
    return out


def arguments_of(target: str, options: TrainingOptions) -> dict[str, Any]:
    """The options that a checkpoint records.  A file is recorded by its folder and name (data set and split), a folder by its
    name; paths are private and left out."""
    kinds = {f.name: f.metadata.get("reads") for f in fields(options) if f.metadata and f.name != "ray"}
    values = asdict(options)
    return {"what": target, **{n: _without_path(values[n], kind in ("files", "excluded")) for n, kind in kinds.items()}}


def _without_path(value: Any, is_file: bool) -> Any:
    if isinstance(value, tuple):
        return [_without_path(v, is_file) for v in value]
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute()):
        path = Path(value)
        return f"{path.resolve().parent.name}/{path.name}" if is_file else path.name
    return value


def train_network(
    target: str, options: TrainConfig, settings: Settings, out: Path, make: Callable[[Any, Settings], TrainingParts]
) -> dict[str, Any] | None:
    """Trains the network that `make` builds and returns the last log row; None in all processes but the main one.

    Raises AmbiscopeError as core.training.trainer.fit does.
    """
    config = TrainConfig(**{f.name: getattr(options, f.name) for f in fields(TrainConfig)})
    arguments = arguments_of(target, options)
    network, task, write = make(options, settings)

    def save(network: Any, folder: Path, row: dict[str, Any]) -> None:
        write(network, folder, {"arguments": arguments, "figures": row})

    row = fit(network, task, replace(config, device=settings.device), out, save, identity=identity(target, options))
    return row if PartialState().is_main_process else None


def miner(options: Any, settings: Settings, reading: Sequence[ReadingExample]) -> Miner:
    """A miner over the passages of --passages, or over the reading passages themselves."""
    return Miner(context_passages(options.passages, reading), settings.home / "cache")


def say(text: str) -> None:
    """Prints a line and flushes it."""
    print(text, flush=True)
