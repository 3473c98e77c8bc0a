"""F1 against the amount of multi-answer training data (AmbigPrompt's Figure 4b): the span answerer tuned on 1, 10, 50 and 100% of it.

    python -m benchmarks.low_resource --data FOLDER --pretrained CHECKPOINT [--steps 200] [--shares 1 10 50 100] [--limit N]

FOLDER is laid out as for benchmarks.ablations.  The multi-answer data are data/practice (without its held-out blocks), multi/train and AmbigNQ's answer
sets; single-answer data (reading/train) stay whole, as in the paper, where NQ-open does.  A smaller share is a part of every larger one.  Judged on
data/starter as in benchmarks.ablations.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.ablations import measure
from core.cli import quiet_libraries
from core.datasets import load
from core.engine import Engine
from core.settings import ROOT, Settings
from core.training.examples import MultiExample
from core.training.mixtures import annotated_examples, load_multi


def portion(rows: Sequence[Any], percent: float, seed: int) -> list[Any]:
    """At least one of the rows; a smaller portion is a part of every larger one."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    return [rows[i] for i in sorted(order[: max(1, round(len(rows) * percent / 100))])]


def as_row(e: MultiExample) -> dict[str, Any]:
    """The layout of multi/*.jsonl."""
    passages = [{"title": title, "text": text} for title, text in e.passages]
    return {"question": e.question, "passages": passages, "answers": [list(names) for names in e.gold], "source": e.source}


def write_portion(data: Path, percent: float, seed: int, out: Path) -> tuple[Path, Path, int]:
    """(multi file, AmbigNQ file, number of questions) of one share."""
    out.mkdir(parents=True, exist_ok=True)
    examples, _ = annotated_examples(ROOT / "data" / "practice", held_out=0.2)
    examples += load_multi([data / "multi" / "train.jsonl.gz"])
    chosen = portion(examples, percent, seed)
    multi = out / "multi.jsonl"
    multi.write_text("".join(json.dumps(as_row(e)) + "\n" for e in chosen))
    rows = json.loads((data / "ambignq" / "train_light.json").read_text())
    several = [r for r in rows if any(a["type"] == "multipleQAs" for a in r["annotations"])]
    pairs = portion(several, percent, seed)
    ambignq = out / "ambignq.json"
    ambignq.write_text(json.dumps(pairs))
    return multi, ambignq, len(chosen) + len(pairs)


def train(args: argparse.Namespace, multi: Path, ambignq: Path, out: Path) -> None:
    data: Path = args.data
    command = [
        sys.executable, "-m", "core", "train", "answerer", "--stage", "tune", "--init", str(args.pretrained), "--context", "7",
        "--reading", str(data / "reading" / "train.jsonl.gz"), "--passages", str(data / "passages" / "wiki.tsv.gz"),
        "--multi", str(multi), "--ambignq", str(ambignq), "--steps", str(args.steps), "--lr", "8e-5", "--head-lr", "3e-4",
        "--evaluate-every", "1000000", "--seed", str(args.seed), "--precision", args.precision, "--out", str(out),
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=ROOT)


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pretrained", required=True, help="a post-pretrained answerer: a folder")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 10, 50, 100], help="percent of the multi-answer data")
    parser.add_argument("--limit", type=int, default=0, help="at most this many test questions (0: all)")
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    questions = load(args.questions)[: args.limit or None]
    found = Engine(settings).corpus("starter").search_many([q.question for q in questions], 10)
    folder = settings.runs_dir / f"low-resource-{args.steps}-{args.seed}"
    print(f"{len(questions)} questions, {args.steps} steps, seed {args.seed}\n", flush=True)
    print("| share | training questions | F1 all | F1 multi | answers |\n|--:|--:|--:|--:|--:|", flush=True)
    rows = []
    for share in args.shares:
        out = folder / f"{share:g}"
        multi, ambignq, count = write_portion(args.data, share, args.seed, folder / f"data-{share:g}")
        if not (out / "last" / "config.json").exists():
            train(args, multi, ambignq, out)
        row = {"share": share, "questions": count, **measure(out / "last", questions, found, settings.device)}
        rows.append(row)
        shown = f"{100 * row['f1']:.1f} | {100 * row['multi']:.1f} | {row['answers']:.2f}"
        print(f"| {share:g}% | {count} | {shown} |", flush=True)
        (folder / "starter.json").write_text(
            json.dumps({"steps": args.steps, "seed": args.seed, "rows": rows}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
