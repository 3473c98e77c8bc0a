"""The tables of Sun et al. 2023 that need more computing than a laptop has, by one command: post-pretraining and the other ablations (Table 3), zero-shot
and decoding (Table 5), less training data (Figure 4b), and the loop against one pass with everything else equal.

    python -m benchmarks.paper --data DATA --device cuda [--seeds 0 1 2] [--steps 5000] [--init small:READER] [--out var/runs/paper] [--dry-run]

For each seed everything begins with a reader that is trained from the untrained base on single-answer data alone (DATA/reading), so that no encoder has
seen the multi-answer data before it is tuned on it.  Each variant of Table 3 is post-pretrained and tuned with its own mechanism: `learned` prompts, one a
step, whose row sees no passage (no prompting model), or rows encoded apart (no interleaving).  What is not post-pretrained is tuned for as many steps as
the others take in both stages.  Post-pretraining teaches [EOI] too, so that the zero-shot model stops, and no row has a bias of [EOI] that was chosen for other weights.  The loop (`ambigprompt-seq2seq`) and one pass (`fid`) share encoder, decoder shape, data, steps
and seed; `--init t5-base` takes the paper's model in place of the small one.  Judged on --questions; the loop against one pass also on the multi-span
questions of DATA/multi/dev, by the number of answers in one passage.  A figure is the mean over seeds; its interval is a
bootstrap over questions; differences and p-values are paired, against the first row of a table, p-values corrected by Holm.  What is trained or judged already is not done again.
`--dry-run` says what would be done and how much computing it takes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate
from benchmarks.training.plans import PARAMETERS, computing, operations, run
from core import disk
from core.metrics.retrieval import covered
from core.metrics.significance.bootstrap import Comparison, interval
from core.metrics.significance.compare import compare_values, corrected
from core.settings import ROOT
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import SHARE, WRITTEN
from core.training.data.mixtures import annotated_examples, load_multi

LOOP = "The loop against one pass"
MULTI_SPAN = ("quoref-dev", "multispanqa")  # sources of DATA/multi/dev whose questions have one passage
LIMIT = 20_000  # single-answer questions whose passages are looked for


@dataclass(frozen=True)
class Training:
    """One `core train`; its weights are in `out`/last."""

    out: Path
    words: tuple[str, ...]

    @property
    def weights(self) -> Path:
        return self.out / "last"

    @property
    def steps(self) -> int:
        """The last --steps counts."""
        return int(self.words[len(self.words) - self.words[::-1].index("--steps")])


@dataclass(frozen=True)
class Judged:
    """A row of a table: a system with the weights that it reads, by setting."""

    table: str
    row: str
    system: str
    weights: dict[str, Training]
    tags: tuple[str, ...] = ()
    multi_span: bool = False  # asked the multi-span questions instead


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

    def pretrain(prompting: str) -> Training:
        words = ["--stage", "pretrain", "--prompting", prompting, "--init", named, "--reader", named]
        return made.train(out / f"pretrained-{prompting}", "answerer", *words, *reading, *length)

    def answerer(name: str, start: Training, *words: str, prompting: str = "interleaved") -> dict[str, Training]:
        how = ["--prompting", prompting, "--init", str(start.weights)]
        tuned = made.train(out / name, "answerer", *how, *reading, *length, *words)
        return {"answerer": tuned, "reader": reader}

    pretrained = pretrain("interleaved")
    full = answerer("ambigprompt", pretrained, *multi)
    rows = {
        "AmbigPrompt": full,
        "w/o post-pretraining": answerer("no-pretraining", reader, *multi, "--steps", str(2 * args.steps)),
        "w/o prompting model": answerer("no-prompting", pretrain("learned"), *multi, prompting="learned"),
        "w/o interleaving": answerer("no-interleaving", pretrain("separate"), *multi, prompting="separate"),
    }
    made.judged += [Judged("Table 3: ablations", name, args.system, weights) for name, weights in rows.items()]

    init = args.init.replace("READER", named)
    one = ["--init", init, *reading]
    zero = {"answerer": pretrained, "reader": reader}
    single = made.train(
        out / "fid-single", "seq2seq", "--stage", "pretrain", "--reader", named, "--target", "spliced", *one, *length
    )
    table = "Table 5: zero-shot"
    made.judged.append(Judged(table, "AmbigPrompt", args.system, zero, ("zero-shot=true",)))
    made.judged.append(Judged(table, "DPR", "dpr-threshold", {"reader": reader}, ("zero-shot=true",)))
    for name in ("fid", "fid-nucleus", "fid-top-k", "fid-diverse-beam"):
        made.judged.append(Judged(table, name, name, {"seq2seq": single, "reader": reader}, ("zero-shot=true",)))

    step = made.train(out / "loop", "seq2seq", "--target", "step", *one, *multi, *length)
    spliced = made.train(out / "one-pass", "seq2seq", "--target", "spliced", *one, *multi, *length)
    for table, multi_span in ((LOOP, False), (f"{LOOP}, multi-span questions", True)):
        loop, once = {"answerer": step, "reader": reader}, {"seq2seq": spliced, "reader": reader}
        made.judged.append(Judged(table, "loop", "ambigprompt-seq2seq", loop, multi_span=multi_span))
        made.judged.append(Judged(table, "one pass", "fid", once, multi_span=multi_span))

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
    amount = sum(
        operations(t.steps, PARAMETERS["minilm" if small or t.words[0] != "seq2seq" else "t5-base"]) for t in trainings
    )
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
        questions = multi_span(args) if judged.multi_span else args.questions
        named = "-".join([judged.system, *(t.out.name for t in judged.weights.values()), questions.stem])
        out = args.out / f"seed-{seed}" / "judged" / named
        words = ["--no-clarify", *(word for tag in judged.tags for word in ("--tag", tag))]
        if "answerer" in judged.weights:
            words += ["--set", "eoi_bias=0"]
        weights = {name: str(t.weights) for name, t in judged.weights.items()}
        report = evaluate(
            judged.system, questions, out, args.corpus, words, args.questions_limit, device=args.device, **weights
        )
        if report is None:
            raise RuntimeError(f"{judged.table}, {judged.row}: not evaluated")
        reports[judged.table, judged.row] = report
    return reports


def multi_span(args: argparse.Namespace) -> Path:
    """The multi-span questions of DATA/multi/dev, each with its one passage."""
    file: Path = args.out / "multi-span.jsonl"
    if not file.exists():
        with gzip.open(args.data / "multi" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
            kept = [line for line in lines if json.loads(line)["source"] in MULTI_SPAN]
        disk.write_text(file, "".join(kept))
    return file


def by_answers(file: Path) -> dict[str, set[str]]:
    """The ids of the questions by how many of their answers stand in their passage."""
    found: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        most = max(covered([p["text"]], row["answers"]) for p in row["passages"])
        name = "three or more answers" if most > 2 else "two answers" if most == 2 else "one answer, or none"
        found.setdefault(name, set()).add(row["id"])
    return found


def values(reports: Sequence[dict[str, Any]], multi: bool) -> list[float]:
    """F1 of each question, the mean over the seeds' reports; a failed question has 0."""
    rows = zip(*([r for r in report["rows"] if r["ambiguous"] or not multi] for report in reports))
    return [sum((r.get("metrics") or {}).get("F1 answer") or 0.0 for r in same) / len(same) for same in rows]


def difference(found: Comparison) -> str:
    """In points, with its interval: `+1.2 [-0.9, +3.3]`."""
    between = f" [{100 * found.interval[0]:+.1f}, {100 * found.interval[1]:+.1f}]" if found.interval else ""
    return f"{100 * (found.difference or 0):+.1f}{between}"


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
        seeds = [100 * sum(own) / max(1, len(own)) for own in (values([r], False) for r in reports)]
        cells.append(f"{min(seeds):.1f} to {max(seeds):.1f}")
        d = found.get(name)
        cells += [difference(d.comparison), f"{d.holm:.4f}"] if d else ["", ""]
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
    parser.add_argument(
        "--shares", type=float, nargs="*", default=[1, 10], help="percent of the multi-answer data, beside all of it"
    )
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
        if name.endswith("multi-span questions"):
            for group, ids in sorted(by_answers(multi_span(args)).items()):
                part = {n: [{"rows": [r for r in of["rows"] if r["id"] in ids]} for of in many] for n, many in rows.items()}
                print(f"\n### {group} in the passage, {len(ids)} questions\n\n{table(part)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
