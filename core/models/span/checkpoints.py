"""Checkpoints of span models: a folder with config.json, the weights without the unchanged base, and a model card README.md."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import nn

from core.errors import CheckpointError
from core.models.encoders.base import load_base
from core.models.loading.files import read_weights, save_weights
from core.models.loading.finding import WEIGHTS, damaged, read_config
from core.models.loading.once import loaded_once
from core.models.span.network import Prompting, SpanConfig, SpanNetwork


def save_span_network(network: nn.Module, folder: Path, about: dict[str, Any] | None = None) -> None:
    assert isinstance(network, SpanNetwork)
    save_weights(network.trained(), folder, {"kind": "span", "config": asdict(network.config), "about": about or {}})


@dataclass(frozen=True)
class Training:
    """A checkpoint's record of its training; empty if it has none."""

    prompting: str = "interleaved"
    target: str = ""  # reader, answerer, or the target of `core train` that made it
    stage: str = ""  # pretrain (single answers and pseudo answers: the zero-shot setting) or tune


def training_of(folder: Path) -> Training:
    """Reads a checkpoint's record of its training.  Raises CheckpointError if config.json can't be read."""
    config = read_config(folder)
    try:
        arguments = (config.get("about") or {}).get("arguments") or {}
        return Training(
            str(config["config"].get("prompting", "interleaved")),
            str(arguments.get("what", "")),
            str(arguments.get("stage", "")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(folder, error) from None


def check_abstains(folder: Path) -> None:
    """Raises CheckpointError for an answering model that wasn't also trained as a reader, because it never learned to abstain
    on a passage."""
    training = training_of(folder)
    if training.target in ("answerer", "cotraining") and not training.stage.startswith("joint"):
        raise CheckpointError(
            f"{folder} holds an answering model, which was not trained to abstain on passages without an answer; "
            "a reader is a folder that `core train reader` made"
        )


@loaded_once(2)
def shared_network(folder: Path, weights: str, device: str) -> SpanNetwork:
    """The network for inference, loaded once for all that read with it.  `weights` is its digest; `device` is where it will
    run."""
    return load_span_network(folder)


def load_span_network(folder: Path, prompting: Prompting | None = None, merge: bool = True) -> SpanNetwork:
    """`prompting`: a mechanism other than the stored one, for ablations.  `merge` adds low-rank updates to the matrices for
    inference; False keeps the network trainable.  Raises CheckpointError if a file is missing, damaged, or doesn't fit the
    network."""
    try:
        config = SpanConfig(**read_config(folder)["config"])
        if prompting is not None:
            config = replace(config, prompting=prompting)
        tensors = read_weights(folder)
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint {folder} is incomplete: {WEIGHTS} is missing; fetch or train it again") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"checkpoint {folder} is damaged ({error}); fetch or train it again") from None
    network = SpanNetwork(load_base(config.base), config)
    try:
        missing, unexpected = network.load_state_dict(tensors, strict=False)
    except RuntimeError as error:  # sizes
        raise CheckpointError(f"checkpoint {folder} does not fit its network: {error}; train it again") from None
    trained = network.trained()
    missing = [m for m in missing if m in trained and not (prompting == "learned" and m == "prompts")]
    if missing or unexpected:
        raise CheckpointError(
            f"checkpoint {folder} does not fit its network: missing {missing[:3]}, unexpected {list(unexpected)[:3]}; train it again"
        )
    if merge and config.rank:
        network.merge()
    return network.eval()
