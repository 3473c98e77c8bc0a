"""The probability that a question is ambiguous, judged without evidence, for Disambig-first (Min et al. 2020, section 5).

The classifier is a logistic regression on the question's sentence vector (all-MiniLM-L6-v2).  Theirs is BERT.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core import disk
from core.errors import CheckpointError
from core.models.loading.finding import BUNDLED, WEIGHTS, read_config
from core.models.loading.once import loaded_once

if TYPE_CHECKING:
    from core.models.encoders.sentence_encoder import Encoder

KIND = "ambiguity"
ENCODER = "minilm"  # the encoder of the weights, independent of the settings


class AmbiguityModel:
    """`weights` (d,) and `bias` on unit vectors of `encoder`; calls from several threads are safe."""

    def __init__(self, weights: NDArray[np.float32], bias: float, encoder: Encoder) -> None:
        self.weights, self.bias, self.encoder = weights, bias, encoder

    def probability(self, question: str) -> float:
        """P(the question is ambiguous)."""
        (vector,) = self.encoder.encode([normal(question)], "query")
        return 1 / (1 + math.exp(-float(vector @ self.weights + self.bias)))


def normal(question: str) -> str:
    """The question as AmbigNQ writes it: lower case, without a question mark."""
    return " ".join(question.lower().split()).rstrip("?").rstrip()


def save_ambiguity(folder: Path, weights: NDArray[np.float32], bias: float, about: dict[str, Any]) -> None:
    """Writes weights (safetensors) and config; files are replaced atomically, config.json last, so that a kill leaves the old model or none.

    Raises StorageError.
    """
    from safetensors.numpy import save

    disk.write_bytes(folder / WEIGHTS, save({"weights": weights.astype(np.float32), "bias": np.array([bias], np.float32)}))
    disk.write_json(folder / "config.json", {"kind": KIND, "encoder": ENCODER, "about": about})


def find_ambiguity(name: str = "default") -> Path:
    """The folder of a model; "default" is the bundled one.  Raises CheckpointError."""
    folder = BUNDLED / KIND if name == "default" else Path(name).expanduser()
    if not (folder / "config.json").exists():
        raise CheckpointError(f"no ambiguity model in {folder}; train one: python -m core train ambiguity --ambignq FILE")
    kind = read_config(folder).get("kind")
    if kind != KIND:
        raise CheckpointError(
            f"{folder} holds a model of kind {kind}, not of {KIND}; train one: python -m core train ambiguity"
        )
    return folder


@loaded_once(2)
def _loaded(folder: Path, _sha: str, device: str) -> AmbiguityModel:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from core.models.encoders.sentence_encoder import load_encoder
    from core.settings import Settings

    try:
        tensors = load_file(folder / WEIGHTS)
        weights, bias = tensors["weights"], float(tensors["bias"][0])
    except (OSError, KeyError, IndexError, SafetensorError) as error:
        raise CheckpointError(f"checkpoint {folder} is incomplete or damaged ({error}); fetch or train it again") from None
    encoder = load_encoder(replace(Settings(), encoder=ENCODER, device=device))
    if weights.shape != (encoder.dimension,):
        raise CheckpointError(
            f"checkpoint {folder} has weights of shape {weights.shape} for vectors of {encoder.dimension}; train it again"
        )
    return AmbiguityModel(weights, bias, encoder)


def load_ambiguity(name: str = "default", device: str = "auto") -> tuple[AmbiguityModel, str]:
    """(model, digest of its weights).  Loaded once; new files in the folder are reloaded.  Raises CheckpointError."""
    from core.models.loading.files import digest  # with torch, which a page that lists the systems does not wait for

    folder = find_ambiguity(name)
    sha = digest(folder)
    return _loaded(folder, sha, device), sha
