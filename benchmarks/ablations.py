"""The ablations of AmbigPrompt's Table 3 for the span answerer: each variant tuned on the same examples, seed and number of steps.

    python -m benchmarks.ablations --data FOLDER --pretrained CHECKPOINT --reader CHECKPOINT [--steps 200] [--only NAME ...]

FOLDER is laid out as core.training expects (reading/, multi/, ambignq/, passages/).  `w/o post-pretraining` starts from the reader, the others from the
post-pretrained answerer.  Judged on data/starter (never trained on) over the 10 passages of its own index, in bf16, without clarification.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from core.cli import quiet_libraries
from core.datasets import load
from core.engine import Engine
from core.greedy import run_answers
from core.models.precision import quick
from core.models.span_answerer import load_answerer
from core.settings import ROOT, Settings
from core.training.held_out import answer_f1
from core.types import ReferenceQuestion, RetrievedPassage

VARIANTS = {
    "AmbigPrompt": ("interleaved", True),
    "w/o task-adaptive post-pretraining": ("interleaved", False),
    "w/o prompting model": ("learned", True),
    "w/o interleaving prompting": ("separate", True),
}


def train(name: str, args: argparse.Namespace, out: Path) -> None:
    prompting, pretrained = VARIANTS[name]
    data: Path = args.data
    command = [
        sys.executable, "-m", "core", "train", "answerer", "--stage", "tune", "--prompting", prompting,
        "--init", str(args.pretrained if pretrained else args.reader), "--context", "7", "--annotated", str(ROOT / "data" / "practice"),
        "--reading", str(data / "reading" / "train.jsonl.gz"), "--passages", str(data / "passages" / "wiki.tsv.gz"),
        "--multi", str(data / "multi" / "train.jsonl.gz"), "--ambignq", str(data / "ambignq" / "train_light.json"),
        "--steps", str(args.steps), "--lr", "8e-5", "--head-lr", "3e-4", "--evaluate-every", "1000000", "--seed", str(args.seed), "--out", str(out),
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT)


def measure(
    folder: Path, questions: Sequence[ReferenceQuestion], found: Sequence[list[RetrievedPassage]], device: str
) -> dict[str, Any]:
    """F1 answer (all and multi), mean number of answers and weights of one answering model, in half precision where that is quick, without clarification."""
    answerer, digest = load_answerer(str(folder), device)
    with quick(torch.device("cpu")):
        runs = run_answers(answerer, [q.question for q in questions], found)
    values = [
        max(answer_f1(answers, [p.answers for p in a.pairs]) for a in question.annotations)
        for answers, question in zip(runs, questions)
    ]
    multi = [v for v, q in zip(values, questions) if q.ambiguous]
    return {
        "f1": sum(values) / len(values),
        "multi": sum(multi) / max(1, len(multi)),
        "answers": sum(map(len, runs)) / len(runs),
        "weights": digest,
    }


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pretrained", type=Path, required=True)
    parser.add_argument("--reader", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--limit", type=int, default=0, help="at most this many questions (0: all)")
    args = parser.parse_args()
    settings = Settings.from_env()
    questions = load(args.questions)[: args.limit or None]
    found = Engine(settings).corpus("starter").search_many([q.question for q in questions], 10)
    print(
        f"{len(questions)} questions, {args.steps} steps, seed {args.seed}\n\n| variant | F1 all | F1 multi | answers |\n|---|--:|--:|--:|",
        flush=True,
    )
    for name in args.only:
        out = settings.runs_dir / f"ablation-{args.steps}-{args.seed}" / name.replace("/", "").replace(" ", "-")
        if not (out / "last" / "config.json").exists():
            train(name, args, out)
        row = measure(out / "last", questions, found, settings.device)
        print(f"| {name} | {100 * row['f1']:.1f} | {100 * row['multi']:.1f} | {row['answers']:.2f} |", flush=True)
        (out / "starter.json").write_text(json.dumps({**row, "steps": args.steps, "seed": args.seed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
