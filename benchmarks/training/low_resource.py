"""F1 against the amount of multi-answer training data (AmbigPrompt's Figure 4b): the span answerer tuned on 1, 10, 50 and 100% of it.

    python -m benchmarks.training.low_resource --data FOLDER [--pretrained CHECKPOINT] [--steps 200] [--shares 1 10 50 100]

The multi-answer data are the written practice folders (without their held-out blocks), multi/train and AmbigNQ's answer sets; single-answer data
(reading/train) stay whole, as in the paper, where NQ-open does.  A smaller share is a part of every larger one.  Judged on data/starter as in
benchmarks.training.ablations.  The bundled reader, with which all begin, has read passages of the practice folders and of multi/train one by one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality.comparison import Test, add_arguments, post_pretrained, shown, tune
from core.settings import Settings, quiet_libraries
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import SHARE, WRITTEN
from core.training.data.mixtures import annotated_examples, load_multi


def portion(rows: Sequence[Any], percent: float, seed: int) -> list[Any]:
    """At least one of the rows; a smaller portion is a part of every larger one."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    return [rows[i] for i in sorted(order[: max(1, round(len(rows) * percent / 100))])]


def as_row(e: MultiExample) -> dict[str, Any]:
    """The layout of multi/*.jsonl."""
    passages = [{"title": title, "text": text} for title, text in e.passages]
    return {"question": e.question, "passages": passages, "answers": [list(names) for names in e.gold], "source": e.source}


def write_portion(
    data: Path, percent: float, seed: int, out: Path, annotated: Sequence[Path] = WRITTEN
) -> tuple[Path, Path, int]:
    """(multi file, AmbigNQ file, number of questions) of one share."""
    out.mkdir(parents=True, exist_ok=True)
    examples = [e for folder in annotated for e in annotated_examples(folder, held_out=SHARE)[0]]
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


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 10, 50, 100], help="percent of the multi-answer data")
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    test = Test(args, settings)
    folder = settings.runs_dir / f"low-resource-{args.steps}-{args.seed}"
    print(f"{len(test.questions)} questions, {args.steps} steps, seed {args.seed}\n", flush=True)
    print("| share | training questions | F1 all | F1 multi | answers |\n|--:|--:|--:|--:|--:|", flush=True)
    rows = []
    for share in args.shares:
        multi, ambignq, count = write_portion(args.data, share, args.seed, folder / f"data-{share:g}")
        trained = tune(args, post_pretrained(args, settings.runs_dir), folder / f"{share:g}", multi=multi, ambignq=ambignq)
        row = {"share": share, "questions": count, **test.measure(trained)}
        rows.append(row)
        print(f"| {share:g}% | {count} | {shown(row)}", flush=True)
        (folder / "starter.json").write_text(
            json.dumps({"steps": args.steps, "seed": args.seed, "rows": rows}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
