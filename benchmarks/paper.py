"""The tables of Sun et al. 2023 that need more computing than a laptop has, by one command: post-pretraining and the other ablations (Table 3), zero-shot
and decoding (Table 5), less training data (Figure 4b), and the loop against one pass with everything else equal.

    python -m benchmarks.paper --data DATA --device cuda [--seeds 0 1 2] [--steps 5000] [--init small:READER] [--out var/runs/paper] [--dry-run]

For each seed everything begins with a reader that is trained from the untrained base on single-answer data alone (DATA/reading), so that no encoder has
seen the multi-answer data before it is tuned on it.  The loop (`ambigprompt-seq2seq`) and one pass (`fid`) share encoder, decoder shape, data, steps
and seed; `--init t5-base` takes the paper's model in place of the small one.  Judged on --questions.  A figure is the mean over seeds; its interval is a
bootstrap over questions; p-values are paired, against the first row of a table, and corrected by Holm.  What is trained or judged already is not done again.
`--dry-run` says what would be done and how much computing it takes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate
from benchmarks.training.plans import PARAMETERS, computing, operations, run
from core.metrics.significance.bootstrap import interval
from core.metrics.significance.compare import compare_values, corrected
from core.settings import ROOT
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import SHARE, WRITTEN
from core.training.data.mixtures import annotated_examples, load_multi

LIMIT = 20_000  # single-answer questions whose passages are looked for


@dataclass(frozen=True)
class Training:
    """One `core train`; its weights are in `out`/last."""

    out: Path
    words: tuple[str, ...]

    @property
    def weights(self) -> Path:
        return self.out / "last"


@dataclass(frozen=True)
class Judged:
    """A row of a table: a system with the weights that it reads, by setting."""

    table: str
    row: str
    system: str
    weights: dict[str, Training]
    tags: tuple[str, ...] = ()


@dataclass
class Plan:
    trainings: list[Training] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)

    def train(self, out: Path, *words: str) -> Training:
        self.trainings.append(Training(out, words))
        return self.trainings[-1]


def plan(args: argparse.Namespace, seed: int) -> Plan:
    """What one seed trains and judges, in the order in which it has to be done."""
    data, out, made = args.data, args.out / f"seed-{seed}", Plan()
    length = ["--steps", str(args.steps), "--evaluate-every", "1000000", "--seed", str(seed), "--precision", args.precision]
    reading = ["--reading", str(data / "reading" / "train.jsonl.gz"), "--passages", str(data / "passages" / "wiki.tsv.gz")]
    reading += ["--limit", str(args.limit)]
    multi = ["--multi", str(data / "multi" / "train.jsonl.gz"), "--ambignq", str(data / "ambignq" / "train_light.json")]
    multi += ["--annotated", *map(str, args.annotated)]

    reader = made.train(out / "reader", "reader", *reading, *length)
    named = str(reader.weights)
    pretrained = made.train(
        out / "pretrained", "answerer", "--stage", "pretrain", "--init", named, "--reader", named, *reading, *length
    )

    def answerer(name: str, start: Training, *words: str) -> dict[str, Training]:
        tuned = made.train(out / name, "answerer", "--init", str(start.weights), *reading, *words, *length)
        return {"answerer": tuned, "reader": reader}

    full = answerer("ambigprompt", pretrained, *multi)
    rows = {
        "AmbigPrompt": full,
        "w/o post-pretraining": answerer("no-pretraining", reader, *multi),
        "w/o prompting model": answerer("no-prompting", pretrained, "--prompting", "learned", *multi),
        "w/o interleaving": answerer("no-interleaving", pretrained, "--prompting", "separate", *multi),
    }
    made.judged += [Judged("Table 3: ablations", name, args.system, weights) for name, weights in rows.items()]

    init = args.init.replace("READER", named)
    one = ["--init", init, *reading]
    zero = {"answerer": pretrained, "reader": reader}
    single = made.train(out / "fid-single", "seq2seq", "--target", "spliced", *one, *length)
    table = "Table 5: zero-shot"
    made.judged.append(Judged(table, "AmbigPrompt", args.system, zero, ("zero-shot=true",)))
    made.judged.append(Judged(table, "DPR", "dpr-threshold", {"reader": reader}, ("zero-shot=true",)))
    for name in ("fid", "fid-nucleus", "fid-top-k", "fid-diverse-beam"):
        made.judged.append(Judged(table, name, name, {"seq2seq": single, "reader": reader}, ("zero-shot=true",)))

    step = made.train(out / "loop", "seq2seq", "--target", "step", *one, *multi, *length)
    spliced = made.train(out / "one-pass", "seq2seq", "--target", "spliced", *one, *multi, *length)
    table = "The loop against one pass"
    made.judged.append(Judged(table, "loop", "ambigprompt-seq2seq", {"answerer": step, "reader": reader}))
    made.judged.append(Judged(table, "one pass", "fid", {"seq2seq": spliced, "reader": reader}))

    table = "Figure 4b: less training data"
    made.judged.append(Judged(table, "100%", args.system, full))
    for share in args.shares:
        folder = out / f"share-{share:g}-data"
        few = ["--multi", str(folder / "multi.jsonl"), "--ambignq", str(folder / "ambignq.json")]
        made.judged.append(Judged(table, f"{share:g}%", args.system, answerer(f"share-{share:g}", pretrained, *few)))
    return made


def cost(args: argparse.Namespace) -> str:
    """How much computing all trainings take, in words."""
    small = args.init.startswith("small")
    trainings = [t for seed in args.seeds for t in plan(args, seed).trainings]
    sizes = (PARAMETERS["small" if small or t.words[0] != "seq2seq" else "t5-base"] for t in trainings)
    amount = sum(operations(args.steps, size) for size in sizes)
    return f"{len(trainings)} trainings of {args.steps} steps, {computing(amount)}, and the judging"


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


def carry_out(args: argparse.Namespace, seed: int) -> dict[tuple[str, str], dict[str, Any]]:
    """(table, row) -> the report of each judged row of a seed."""
    made = plan(args, seed)
    for share in args.shares:
        write_portion(args.data, share, seed, args.out / f"seed-{seed}" / f"share-{share:g}-data", args.annotated)
    for training in made.trainings:
        if not (training.weights / "config.json").exists():
            print(f"seed {seed}: {training.out.name}", flush=True)
            run(["train", *training.words, "--out", str(training.out)], args.device)
    reports = {}
    for judged in made.judged:
        named = "-".join([judged.system, *(t.out.name for t in judged.weights.values())])
        out = args.out / f"seed-{seed}" / "judged" / named
        words = ["--no-clarify", *(word for tag in judged.tags for word in ("--tag", tag))]
        weights = {name: str(t.weights) for name, t in judged.weights.items()}
        report = evaluate(
            judged.system, args.questions, out, args.corpus, words, args.questions_limit, device=args.device, **weights
        )
        if report is None:
            raise RuntimeError(f"{judged.table}, {judged.row}: not evaluated")
        reports[judged.table, judged.row] = report
    return reports


def values(reports: Sequence[dict[str, Any]], multi: bool) -> list[float]:
    """F1 of each question, the mean over the seeds' reports; a failed question has 0."""
    rows = zip(*([r for r in report["rows"] if r["ambiguous"] or not multi] for report in reports))
    return [sum((r.get("metrics") or {}).get("F1 answer") or 0.0 for r in same) / len(same) for same in rows]


def table(rows: dict[str, Sequence[dict[str, Any]]]) -> str:
    """A table in Markdown: F1 over all and ambiguous questions with intervals, lowest and highest seed, and the difference from the first row."""
    first = values(next(iter(rows.values())), False)
    against = {name: compare_values(values(of, False), first) for name, of in list(rows.items())[1:]}
    found = corrected(against)
    lines = ["| row | F1 all | F1 multi | seeds, all | from the first row | p (Holm) |", "|---|--:|--:|--:|--:|--:|"]
    for name, reports in rows.items():
        cells = [name]
        for multi in (False, True):
            own = values(reports, multi)
            ends = interval(own)
            between = f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""
            cells.append(f"{100 * sum(own) / max(1, len(own)):.1f}{between}")
        seeds = [100 * (r["scores"]["F1 answer"]["all"] or 0.0) for r in reports]
        cells.append(f"{min(seeds):.1f} to {max(seeds):.1f}")
        d = found.get(name)
        cells += [f"{100 * (d.comparison.difference or 0):+.1f}", f"{d.holm:.4f}"] if d else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="holds reading/, multi/, ambignq/ and passages/")
    parser.add_argument("--annotated", type=Path, nargs="*", default=list(WRITTEN), metavar="FOLDER")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=5000, help="of each training (default: %(default)s, as in the paper)")
    parser.add_argument("--limit", type=int, default=LIMIT, help="single-answer questions (default: %(default)s)")
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 10, 50], help="percent of the multi-answer data")
    parser.add_argument(
        "--init", default="small:READER", help="encoder-decoder of the loop and of fid; READER: the seed's reader"
    )
    parser.add_argument("--system", default="ambigprompt", help="that the span models answer in (default: %(default)s)")
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--questions-limit", type=int, default=0)
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "runs" / "paper")
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args(argv)
    args.data, args.out = args.data.resolve(), args.out.resolve()
    print(cost(args), flush=True)
    if args.dry_run:
        for training in plan(args, args.seeds[0]).trainings:
            print(f"core train {' '.join(training.words)}")
        return 0
    by_seed = [carry_out(args, seed) for seed in args.seeds]
    tables = dict.fromkeys(name for name, _ in by_seed[0])
    for name in tables:
        rows = {row: [reports[name, row] for reports in by_seed] for of, row in by_seed[0] if of == name}
        print(f"\n## {name}\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
