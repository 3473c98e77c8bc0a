"""Answering models trained for a comparison, and judged on data/starter: the two stages as the ablations and the low-resource curve use them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from core.datasets import load
from core.decoding import run_answers
from core.engine import Engine
from core.models.scheduling.device import bf16_autocast
from core.models.span.answerer import load_answerer
from core.settings import ROOT, Settings
from core.training.held_out import answer_f1
from core.types import ReferenceQuestion, RetrievedPassage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, help="laid out as core.training expects: reading/, multi/, ambignq/, passages/"
    )
    parser.add_argument("--reader", default="default", help="a folder or a bundled name")
    parser.add_argument("--pretrained", type=Path, help="a post-pretrained answerer; without it one is made from the reader")
    parser.add_argument("--pretrain-steps", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "--pool", type=int, default=2000, help="single-answer questions, and as many of AmbigNQ, whose passages are looked for"
    )
    parser.add_argument("--freeze", type=int, default=0, help="lower encoder layers that stay as they are")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto")
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--limit", type=int, default=0, help="at most this many test questions (0: all)")


def _command(args: argparse.Namespace, stage: str, init: str | Path, steps: int, out: Path) -> list[str]:
    data: Path = args.data
    return [
        sys.executable, "-m", "core", "train", "answerer", "--stage", stage, "--init", str(init), "--context", "7", "--steps", str(steps),
        "--reading", str(data / "reading" / "train.jsonl.gz"), "--passages", str(data / "passages" / "wiki.tsv.gz"), "--limit", str(args.pool),
        "--freeze", str(args.freeze), "--lr", "8e-5", "--head-lr", "3e-4", "--evaluate-every", "1000000", "--seed", str(args.seed),
        "--precision", args.precision, "--out", str(out),
    ]  # fmt: skip


def post_pretrained(args: argparse.Namespace, runs: Path) -> Path:
    """The answering model after stage 1 (Eq. 8-9), from the reader: single-answer questions with its pseudo answers."""
    if args.pretrained:
        return Path(args.pretrained)
    out = runs / f"post-pretrained-{args.pretrain_steps}-{args.seed}"
    if not (out / "last" / "config.json").exists():
        command = _command(args, "pretrain", args.reader, args.pretrain_steps, out)
        subprocess.run([*command, "--reader", args.reader], check=True, cwd=ROOT)
    return out / "last"


def tune(
    args: argparse.Namespace,
    init: str | Path,
    out: Path,
    *,
    multi: Path,
    ambignq: Path,
    annotated: Sequence[Path] = (),
    prompting: str = "interleaved",
) -> Path:
    """The folder of a model after stage 2 (Eq. 10); one that is already there is not trained again."""
    if not (out / "last" / "config.json").exists():
        command = _command(args, "tune", init, args.steps, out)
        command += ["--prompting", prompting, "--multi", str(multi), "--ambignq", str(ambignq)]
        subprocess.run([*command, *(["--annotated", *map(str, annotated)] if annotated else [])], check=True, cwd=ROOT)
    return out / "last"


class Test:
    """The test questions with the passages that the starter corpus has for them."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        self.questions: Sequence[ReferenceQuestion] = load(args.questions)[: args.limit or None]
        self.device = settings.device
        self.found: Sequence[list[RetrievedPassage]] = (
            Engine(settings).corpus("starter").search_many([q.question for q in self.questions], 10)
        )

    def measure(self, folder: Path) -> dict[str, Any]:
        """F1 answer (all and multi), mean number of answers and weights of one answering model: greedy, without reranking and clarification, in half
        precision where that is quick."""
        answerer, digest = load_answerer(str(folder), self.device)
        with bf16_autocast(torch.device("cpu")):
            runs = run_answers(answerer, [q.question for q in self.questions], self.found)
        values = [
            max(answer_f1(answers, [p.answers for p in a.pairs]) for a in question.annotations)
            for answers, question in zip(runs, self.questions)
        ]
        multi = [v for v, q in zip(values, self.questions) if q.ambiguous]
        return {
            "f1": sum(values) / len(values),
            "multi": sum(multi) / max(1, len(multi)),
            "answers": sum(map(len, runs)) / len(runs),
            "weights": digest,
        }


def shown(row: dict[str, Any]) -> str:
    """The figures of `Test.measure` as cells of a table."""
    return f"{100 * row['f1']:.1f} | {100 * row['multi']:.1f} | {row['answers']:.2f} |"
