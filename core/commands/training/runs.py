"""What the targets of `core train` share besides options: refused files, what identifies a run, and a complete run."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.commands.training.options import DEFAULTS
from core.disk import plain_or_gz
from core.errors import InputError
from core.settings import Settings

if TYPE_CHECKING:
    from core.training.trainer import TrainConfig

STARTER_FILES = ("questions.json", "passages.tsv")
FILES = ("exclude", "reading", "reading_dev", "multi", "multi_dev", "annotated", "ambignq", "ambignq_dev", "passages")
FOLDERS = ("annotated",)
OWN = ("base", "side", "pooling", "rank", "batch", "pool", "picks")  # options of single targets that belong to a run's identity
HELD_BACK = ("starter", "starter_test")  # below data/

Made = tuple[Any, Any, Callable[..., object]]  # (network, task, how to save)


def check_files(args: argparse.Namespace, settings: Settings) -> None:
    """Raises InputError for a missing file, and for data that is only evaluated on, even through a link or as a copy."""
    given: list[Path] = []
    for name in FILES:
        value = getattr(args, name, None)
        given += value if isinstance(value, list) else [value] if value is not None else []
    for path in given:
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
    given = [path for path in given if path not in getattr(args, "exclude", ())]  # only left out of what is trained on
    for path, folder in itertools.product(given, (settings.starter_dir.with_name(name) for name in HELD_BACK)):
        same = any(
            own.exists()
            and (f := plain_or_gz(path / own.name) if path.is_dir() else path).is_file()
            and _unpacked_start(f, own.stat().st_size + 1) == own.read_bytes()
            for own in (folder / name for name in STARTER_FILES)
        )
        if same or folder.resolve() in (path.resolve(), path.resolve().parent):
            raise InputError(f"{path} contains data/{folder.name}, which must not be used for training")


def _unpacked_start(path: Path, size: int) -> bytes:
    """At most `size` first bytes of a plain or gzipped file; b"" if it is damaged, which its reader reports."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _digest(path: Path) -> dict[str, Any]:
    """The size in bytes and the sha256 of a file's content."""
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _weights(name: str | None, kind: str) -> Any:
    """Digests of a checkpoint's files (bundled or a folder); a hub name identifies itself."""
    from core.models.loading.finding import named_folder
    from core.models.loading.hub import is_name

    if name is None:
        return None
    name = name.removeprefix("small:")  # a new decoder over this checkpoint's encoder
    if (is_name(name) and not Path(name).exists()) or (folder := named_folder(name, kind)) is None:
        return name
    files = sorted(f for f in folder.iterdir() if f.suffix in (".json", ".safetensors", ".packed", ".bin", ".model"))
    return {f.name: _digest(f) for f in files}


def identity(args: argparse.Namespace) -> dict[str, Any]:
    """What identifies a run besides its TrainConfig: arguments, and digests of the input files, wherever they are.

    Every target names every option, so that run folders of earlier versions can be resumed.
    """
    out = {"what": args.what, **{name: getattr(args, name, default) for name, default in DEFAULTS.items()}}
    for name in ("exclude", "reading", "reading_dev", "multi", "multi_dev"):
        out[name] = [_digest(path) for path in getattr(args, name, [])]
    for name in ("ambignq", "passages"):
        path = getattr(args, name, None)
        out[name] = path and _digest(path)
    out["annotated"] = [
        [_digest(f) for n in STARTER_FILES if (f := plain_or_gz(p / n)).exists()] for p in getattr(args, "annotated", [])
    ]
    out |= {name: getattr(args, name) for name in OWN if name in args}
    if args.what == "answerer" and not args.rank:  # as before there was this option
        del out["rank"]
    out["init"] = _weights(getattr(args, "init", None), args.what)
    out["reader"] = _weights(getattr(args, "reader", None), "reader")
    return out


def about(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that a checkpoint records: names of files, not paths, which are private."""
    return {name: _named(value) for name, value in vars(args).items() if name not in ("run", "command", "typed", "ray")}


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(v) for v in value]
    looks_like_a_path = isinstance(value, Path) or (isinstance(value, str) and Path(value).is_absolute())
    return Path(value).name if looks_like_a_path else value


def config_of(args: argparse.Namespace, settings: Settings) -> TrainConfig:
    """The run's TrainConfig from the arguments.  Raises InputError for a number that is out of bounds."""
    from core.training.trainer import TrainConfig

    return TrainConfig(
        steps=args.steps,
        minutes=args.minutes,
        lr=args.lr,
        head_lr=args.head_lr,
        seed=args.seed,
        evaluate_every=args.evaluate_every,
        precision=args.precision,
        device=settings.device,
        save_minutes=args.save_minutes,
        log_with=getattr(args, "log_with", ""),
    )


def train_network(
    args: argparse.Namespace,
    settings: Settings,
    make: Callable[[argparse.Namespace, Settings], Made],
    beside: Callable[[Path], object] | None = None,
) -> int:
    """Trains the network that `make` builds and prints the last log row.

    `beside`: writes what else belongs in a checkpoint folder.  Raises AmbiscopeError as core.training.trainer.fit does.  Of several processes,
    the main one prints.
    """
    from accelerate import PartialState

    from core.training.trainer import fit

    stage = f"-{args.stage}" if "stage" in args else ""
    out: Path = args.out or settings.runs_dir / f"{args.what}{stage}"
    config, arguments = config_of(args, settings), about(args)
    network, task, write = make(args, settings)

    def save(network: Any, folder: Path, row: dict[str, Any]) -> None:
        write(network, folder, {"arguments": arguments, "figures": row})
        if beside:
            beside(folder)

    row = fit(network, task, config, out, save, identity=identity(args))
    if PartialState().is_main_process:
        print(json.dumps({"out": str(out), **row}))
    return 0


def miner(args: argparse.Namespace, settings: Settings, reading: Any) -> tuple[Any, Path]:
    """(where context passages are mined, the cache folder)."""
    from core.training.data.mining import Miner
    from core.training.data.mixtures import context_passages

    return Miner(context_passages(args.passages, reading)), settings.home / "cache"


def say(text: str) -> None:
    """Prints a line at once."""
    print(text, flush=True)
