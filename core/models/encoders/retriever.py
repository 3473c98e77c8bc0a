"""A trained retriever: an encoder of questions and, depending on `side`, of passages too, over an unchanged base.

Source: Karpukhin et al. 2020 (DPR) and Sun et al. 2023, appendix C.  There both sides are trained; with `side` "question", passages keep the
base's vectors, so that an index of the base still works.  This module only reads files; the network is in core.models.encoders.retriever_network.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import CheckpointError
from core.models.loading.finding import BUNDLED, WEIGHTS, read_config
from core.models.loading.packaged import MINILM

KIND = "retriever"
CLS = "cls:"  # prefix of a checkpoint's name: the vector is the first token's state
SIDES = ("question", "both")
POOLINGS = ("mean", "cls")


@dataclass(frozen=True)
class RetrieverConfig:
    """`rank` of the low-rank updates in the upper `layers` layers; 0 trains all weights except the embeddings."""

    base: str = MINILM  # the packaged one, a folder or a hub name
    side: str = "question"
    pooling: str = "mean"
    rank: int = 16
    layers: int = 6
    max_tokens: int = 256

    def __post_init__(self) -> None:
        for name, allowed in (("side", SIDES), ("pooling", POOLINGS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is {getattr(self, name)!r}; use {' or '.join(allowed)}")
        if self.rank < 0 or self.layers < 1:
            raise ValueError(f"rank {self.rank} must be at least 0, layers {self.layers} at least 1")

    @property
    def untrained(self) -> str:
        """The base's name, as AMBISCOPE_ENCODER takes it."""
        return f"{CLS}{self.base}" if self.pooling == "cls" else self.base


def find_retriever(name: str) -> Path | None:
    """The folder of a trained retriever, bundled as `checkpoints/NAME` or as given; None if the name means another kind of
    encoder."""
    for folder in (BUNDLED / name, Path(name).expanduser()):
        with suppress(CheckpointError):
            if read_config(folder).get("kind") == KIND:
                return folder
    return None


def retriever_config(folder: Path) -> RetrieverConfig:
    """Reads a retriever's config.json.  Raises CheckpointError."""
    try:
        return RetrieverConfig(**read_config(folder)["config"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder, error) from None


def damaged(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"retriever {folder} is damaged or does not fit its base ({error}); train it again")


def weights_name(encoder: str) -> str:
    """An encoder's name.  A folder's includes the digest of its weights, because other weights may be written to it later.
    Raises CheckpointError."""
    folder = find_retriever(encoder)
    if folder is None:
        folder = Path(encoder.removeprefix(CLS)).expanduser()
        if encoder == MINILM or not (folder / WEIGHTS).is_file():
            return encoder
    from core.models.loading.files import digest

    return f"{encoder}@{digest(folder)}"


def index_name(encoder: str) -> str:
    """The name of the encoder that made the passage vectors: the base if a retriever was trained on questions only, else the
    encoder itself (`weights_name`)."""
    if (folder := find_retriever(encoder)) is not None and (config := retriever_config(folder)).side == "question":
        encoder = config.untrained
    return weights_name(encoder)
