"""Finds the weights of a model: bundled folders, folders written by `train`, encoder-decoders, files in the authors' formats,
hub names.

Only reads names and config.json and imports nothing heavy, so that a page can show what is ready before the libraries are loaded.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from core.errors import CheckpointError
from core.models.loading import hub
from core.models.loading.packaged import MINILM, MPNET, PREPARED, packaged_folder
from core.settings import ROOT

BUNDLED = ROOT / "checkpoints"
WEIGHTS = "model.safetensors"
# named by their bases; the default is the first whose base is installed: MPNet has 420 MB, MiniLM comes with the app
NETWORKS = (MPNET, MINILM)
RELEASED_WEIGHTS = ("pytorch_model.bin", "model.pt")  # of the authors' folders
FID_DETAILS = "fid.json"  # our part of a checkpoint in transformers' form, next to its config.json
SEQ2SEQ_ANSWERER = "answerer-seq2seq"  # the bundled encoder-decoder that writes one answer a step
SMALL_SEQ2SEQ = "small-seq2seq"  # `kind` in config.json of core.models.seq2seq.small
LANGUAGE = "language"  # the bundled language model: its `kind` in config.json, and its name
# checkpoints that are named without a folder, and how to get them where they are not bundled
TRAINING_COMMANDS = {
    "answerer-seq2seq": "train it with `python -m core train seq2seq --init small:minilm`",
    "fid": "train it with `python -m core train seq2seq --target spliced --init small:minilm`",
    "rewriter": "train it with `python -m core train disambiguation --init small`",
}


def read_config(folder: Path) -> dict[str, Any]:
    """A checkpoint's config.json.  Raises CheckpointError if it is missing or damaged."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError(f"expected an object, not {type(config).__name__}")
    except (OSError, ValueError) as error:
        raise damaged(folder, error) from None
    return config


def damaged(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"checkpoint {folder} is damaged (config.json: {error}); fetch or train it again")


def default_network() -> str:
    """The bundled network that reads and answers by default."""
    for name in NETWORKS[:-1]:
        with contextlib.suppress(CheckpointError):
            packaged_folder(name)
            return name
    return NETWORKS[-1]


def named_folder(name: str) -> Path | None:
    """The folder with a config.json that a name refers to: bundled as `checkpoints/<name>` ("default": see `default_network`),
    a path, or fetched from the hub.  Raises CheckpointError if it can't be fetched."""
    for folder in (BUNDLED / (default_network() if name == "default" else name), Path(name).expanduser()):
        if (folder / "config.json").exists():
            return folder
    return hub.fetch(name) if hub.is_name(name) and not Path(name).exists() else None


def find_checkpoint(name: str, kind: str) -> Path:
    """A span model's folder, found by `named_folder`.  `kind` is for the message, such as "reader".

    Raises CheckpointError that lists what is bundled, or says why the folder is not a span model's.
    """
    if (folder := named_folder(name)) is None:
        bundled = ", ".join(sorted(p.parent.name for p in BUNDLED.glob("*/config.json"))) or "none"
        raise CheckpointError(
            f"no checkpoint '{name}' ({kind}); bundled: {bundled}; a folder with config.json and {WEIGHTS} works too"
        )
    config = read_config(folder)
    if config.get("kind") != "span":
        actual = config.get("kind") or config.get("model_type")
        raise CheckpointError(
            f"{folder} holds {f'a {actual} model' if actual else 'a model of unknown kind'}, not a span model; "
            "name a folder that `train` made, or use system ambigprompt-seq2seq for a T5 or BART folder"
        )
    return folder


def is_span_model(name: str) -> bool:
    """True for "default" and for a span model's folder or repository; False for encoder-decoders.  Raises CheckpointError as `named_folder`."""
    if name == "default":
        return True
    if (folder := named_folder(name)) is None:
        return False
    try:
        return bool(read_config(folder).get("kind") == "span")
    except CheckpointError:
        return False


def find_writer(name: str) -> Path:
    """The folder of a writer, without loading it.  Raises CheckpointError if it or its base is missing."""
    if (folder := named_folder(name)) is None:
        raise CheckpointError(
            f"no writer '{name}'; train one with `python -m core train writer`, or name its folder in AMBISCOPE_WRITER"
        )
    config = read_config(folder)
    if config.get("kind") != "writer":
        raise CheckpointError(f"{folder} does not hold a writer; name a folder of `python -m core train writer`")
    base = (config.get("config") or {}).get("base")
    if base in PREPARED:
        PREPARED[base].check()
    return folder


def find_answering(name: str) -> None:
    """Looks for the files of an answering model without loading them.  Raises CheckpointError."""
    if is_span_model(name):
        find_checkpoint(name, "answerer")
        return
    try:
        find_fid(name)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; the bundled answering model is named 'default'") from None


def find_fid(name: str) -> str:
    """A bundled or given folder, or a hub name, found without loading weights; "default" is the bundled answerer-seq2seq.  Raises CheckpointError."""
    name = SEQ2SEQ_ANSWERER if name == "default" else name
    for path in (BUNDLED / name, Path(name).expanduser()):
        if (path / "config.json").exists():
            return str(_encoder_decoder(path))
        if find_released(path) is not None:
            return str(path)
        if path.is_dir():
            raise CheckpointError(f"checkpoint {path} is incomplete: config.json is missing; fetch or train it again")
    if name in TRAINING_COMMANDS:
        raise CheckpointError(
            f"checkpoint '{name}' is not bundled here; {TRAINING_COMMANDS[name]}, or name a folder or a hub name instead"
        )
    if hub.is_name(name):
        return str(_encoder_decoder(hub.fetch(name)))
    if name.startswith((".", "/", "~")) or "/" in name:
        raise CheckpointError(
            f"there is no folder {name}; name a folder with an encoder-decoder, or a hub name such as t5-base"
        )
    return name


def _encoder_decoder(folder: Path) -> Path:
    """Returns the folder.  Raises CheckpointError if it contains another of our kinds of model."""
    kind = read_config(folder).get("kind")
    if kind is not None and kind != SMALL_SEQ2SEQ:
        raise CheckpointError(
            f"{folder} holds a {kind} model, not an encoder-decoder; use system ambiscope for it, or name a T5 or BART folder"
        )
    return folder


def find_released(location: str | Path) -> Path | None:
    """The file of weights in the authors' format at `location`, or inside it if it is a folder; None for anything else."""
    path = Path(location)
    if path.is_file() and path.suffix in (".pt", ".bin", ".pth"):
        return path
    if path.is_dir() and not (path / WEIGHTS).exists():
        return next((path / name for name in RELEASED_WEIGHTS if (path / name).exists()), None)
    return None
