"""Options that several targets of `core train` share, in groups: data, network, run and optimiser.

A target adds the groups that it uses.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from core.errors import InputError

# also what a run's identity says of an option that its target does not have (core.commands.training.runs)
DEFAULTS: dict[str, Any] = {
    "stage": "tune",
    "prompting": "interleaved",
    "context": 6,
    "eoi_share": 0.35,
    "batch_tokens": 4096,
    "limit": 0,
    "target": "step",
    "joined": 0.25,
    "freeze": 0,
    "models": 3,
    "rounds": 1,
}
LEAST = {"context": 2, "batch_tokens": 1, "limit": 0, "skip": 0, "freeze": 0, "repeat": 0, "rank": 0}
SHARES = ("eoi_share", "joined")

_LIST: dict[str, Any] = {"type": Path, "nargs": "*", "default": []}
_DATA: dict[str, tuple[dict[str, Any], str]] = {
    "reading": (_LIST, "JSONL(.gz) files with question, title, passage and answers"),
    "reading-dev": (_LIST, "held-out files in the format of --reading"),
    "multi": (_LIST, "JSONL(.gz) files with question, passages and answers (lists of aliases)"),
    "multi-dev": (_LIST, "held-out files in the format of --multi"),
    "annotated": ({**_LIST, "metavar": "FOLDER"}, "folders with questions.json and passages.tsv"),
    "ambignq": ({"type": Path}, "AmbigNQ light JSON; its question-answer pairs become statements in passages"),
    "ambignq-dev": ({"type": Path}, "a held-out file in the format of --ambignq"),
    "passages": ({"type": Path}, "TSV(.gz) in the DPR format, to search for context passages"),
}


def data(parser: argparse.ArgumentParser, *names: str, limit: str = "", **texts: str) -> None:
    """Options for the target's input files.

    `limit`: what --limit restricts ("": no such option).  `texts`: help texts that replace the usual ones.
    """
    group = parser.add_argument_group("data")
    for name in names:
        kind, text = _DATA[name]
        group.add_argument(f"--{name}", **{"metavar": "FILE", **kind}, help=texts.get(name.replace("-", "_"), text))
    if limit:
        group.add_argument("--limit", type=int, default=DEFAULTS["limit"], metavar="N", help=limit)


def start_from(parser: argparse.ArgumentParser, init: str, reader: str = "") -> None:
    """--init, and --reader if a help text for it is given."""
    parser.add_argument("--init", metavar="CHECKPOINT", help=init)
    if reader:
        parser.add_argument("--reader", metavar="CHECKPOINT", help=reader)


def prompting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prompting",
        choices=["interleaved", "separate", "learned"],
        default=DEFAULTS["prompting"],
        help="how the previous answers reach the passages (default: %(default)s)",
    )


def freeze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--freeze",
        type=int,
        default=DEFAULTS["freeze"],
        metavar="LAYERS",
        help="number of lower encoder layers to freeze (default: %(default)s)",
    )


def adapted_base(parser: argparse.ArgumentParser) -> None:
    """--base of a new network, and --rank."""
    parser.add_argument(
        "--base", choices=["minilm", "mpnet"], default="minilm", help="the encoder of a new network (default: %(default)s)"
    )
    parser.add_argument(
        "--rank",
        type=int,
        default=0,
        help="train low-rank updates of all layers, of this rank, instead of all weights: few questions change little of what the "
        "encoder knows (default: %(default)s, train all weights)",
    )


def exclude(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--exclude",
        **_LIST,
        metavar="FILE",
        help="question files to be evaluated on: a training row that asks one of their questions is left out",
    )


def repeat(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repeat",
        type=int,
        default=0,
        metavar="CHUNKS",
        help="with a small network and --freeze 6: train repeatedly on the first CHUNKS chunks of 96 questions; "
        "the encoder reads them once (default: %(default)s, off)",
    )


def stage(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stage",
        choices=["pretrain", "tune", "joint"],
        default=DEFAULTS["stage"],
        help="post-pretraining (Sun et al. 2023, Eq. 8-9), tuning (Eq. 10), or tuning of a network that also stays a per-passage "
        "reader (default: %(default)s)",
    )


def context(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--context",
        type=int,
        default=DEFAULTS["context"],
        metavar="PASSAGES",
        help="passages per question in training, at least 2 (default: %(default)s)",
    )


def eoi_share(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--eoi-share",
        type=float,
        default=DEFAULTS["eoi_share"],
        metavar="SHARE",
        help="share of steps whose target is [EOI], lambda of section 3.3 (default: %(default)s)",
    )


def batch_tokens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--batch-tokens",
        type=int,
        default=DEFAULTS["batch_tokens"],
        metavar="N",
        help="tokens per training step (default: %(default)s)",
    )


def output(parser: argparse.ArgumentParser, seed: bool = True) -> None:
    """--out and --seed."""
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="output folder (default: a folder in runs/ under AMBISCOPE_HOME)"
    )
    if seed:
        parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")


def length(parser: argparse.ArgumentParser) -> None:
    """How long a network is trained, and how often it is evaluated and saved."""
    group = parser.add_argument_group("length of the run")
    group.add_argument("--steps", type=int, default=10_000, help="training steps (default: %(default)s)")
    group.add_argument(
        "--minutes", type=float, default=0.0, help="maximum training time in minutes (default: %(default)s, no limit)"
    )
    group.add_argument(
        "--evaluate-every", type=int, default=500, metavar="STEPS", help="evaluate every STEPS steps (default: %(default)s)"
    )
    group.add_argument(
        "--save-minutes",
        type=float,
        default=5.0,
        metavar="MINUTES",
        help="save the state every MINUTES minutes, and at SIGTERM and Ctrl-C (default: %(default)s)",
    )


def optimiser(parser: argparse.ArgumentParser, lr: str = "learning rate of the encoder") -> None:
    """Learning rates and precision."""
    group = parser.add_argument_group("optimiser")
    group.add_argument("--lr", type=float, default=5e-5, help=f"{lr} (default: %(default)s)")
    group.add_argument("--head-lr", type=float, default=2e-4, help="learning rate of all other weights (default: %(default)s)")
    group.add_argument(
        "--precision",
        choices=["auto", "bf16", "fp32"],
        default="auto",
        help="auto uses bf16 if the device supports it natively (default: %(default)s)",
    )


def tracker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-with",
        metavar="NAME",
        default="",
        help="also send losses and held-out figures to tensorboard (files in OUT/logs), trackio or wandb (default: to none)",
    )


def network(parser: argparse.ArgumentParser, lr: str = "learning rate of the encoder") -> None:
    """The options of every target that trains a network in steps."""
    batch_tokens(parser)
    output(parser)
    tracker(parser)
    length(parser)
    optimiser(parser, lr)


def check_numbers(args: argparse.Namespace) -> None:
    """Checks numbers that TrainConfig does not check.  Raises InputError."""
    for name, least in LEAST.items():
        if getattr(args, name, least) < least:
            raise InputError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be at least {least}")
    for name in SHARES:
        if not 0 <= getattr(args, name, 0.0) <= 1:
            raise InputError(f"--{name.replace('_', '-')} is {getattr(args, name)}; it must be between 0 and 1")
