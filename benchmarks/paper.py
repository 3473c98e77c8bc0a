"""The tables of Sun et al. 2023 that need more computing than a laptop has, by one command: post-pretraining and the other ablations (Table 3), zero-shot
and decoding (Table 5), less training data (Figure 4b), and the loop against one pass with everything else equal.

    python -m benchmarks.paper --data DATA --device cuda [--seeds 0 1 2] [--steps 5000] [--tables ablations zero-shot ...] [--init small:READER] [--dry-run]

Everything starts from one reader that is trained from the untrained base on single-answer data alone (DATA/reading), so that no encoder has seen the
multi-answer data before it is tuned on it; everything else is trained once per seed.  Each variant of Table 3 is post-pretrained and tuned with its
own mechanism: `learned` prompts, one per step, whose row sees no passage (no prompting model), or rows encoded apart (no interleaving).  What is not post-pretrained is tuned for as many steps as
the others take in both stages.  Post-pretraining teaches [EOI] too, so that the zero-shot model stops, and no row has an [EOI] bias that was chosen for
other weights.  The loop (`ambigprompt-seq2seq`) and one pass (`fid`) share encoder, decoder shape, data, steps and seed; `--init t5-base` takes
the paper's model in place of the small one.  Judged on --questions; the loop against one pass also on the multi-span
questions of DATA/multi/dev, by the number of answers in one passage.  A figure is the mean over seeds; its interval is a
bootstrap over questions; differences and p-values are paired, against the first row of a table, p-values corrected by Holm.  What is trained or judged already is not repeated.
Tables are made one after the other, each printed when it is complete; with --at-once, what doesn't wait for other weights runs in parallel.  `--dry-run` prints the
trainings and how much computing they take.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from benchmarks.evaluating import evaluate, markdown_table, mean_points, points
from benchmarks.training.plans import BATCH_TOKENS, PARAMETERS, computing, operations, run
from core import disk, json_io
from core.metrics.retrieval import covered
from core.metrics.significance.bootstrap import Comparison
from core.metrics.significance.compare import compare_values, corrected
from core.settings import ROOT
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import HELD_OUT_SHARE, PRACTICE_FOLDERS
from core.training.data.mixtures import annotated_examples, load_multi, load_reading

TABLES = {
    "ablations": "Table 3: ablations",
    "zero-shot": "Table 5: zero-shot",
    "decoding": "Table 5: zero-shot, one pass in four ways of decoding",
    "low-resource": "Figure 4b: less training data",
    "loop": "The loop against one pass",
    "multi-span": "The loop against one pass, multi-span questions",
}
MULTI_SPAN = ("quoref-dev", "multispanqa")  # sources of DATA/multi/dev whose questions have one passage
NOT_ALONE = ("qamr", "policyqa")  # single-answer questions that make sense only with their passage
T = TypeVar("T")
LIMIT = 20_000  # single-answer questions whose passages are retrieved


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

    table: str  # a key of TABLES
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
    """The trainings and evaluations of one seed.  A training comes after those whose weights it reads."""
    out, seed_plan = args.out / f"seed-{seed}", Plan()
    common = ["--evaluate-every", "1000000", "--precision", args.precision, "--batch-tokens", str(args.batch_tokens)]
    length = ["--steps", str(args.steps), "--seed", str(seed), *common]
    passages = ["--passages", str(args.out / "passages.tsv")]
    reading = ["--reading", str(out / "reading.jsonl"), *passages]

    def multi_options(share: float = 100) -> list[str]:
        return ["--multi", str(out / f"multi-{share:g}.jsonl"), "--ambignq", str(out / f"ambignq-{share:g}.json")]

    all_multi = multi_options()
    reader_length = ["--steps", str(args.reader_steps or args.steps), "--seed", str(args.seeds[0]), *common]
    reader = seed_plan.train(args.out / "reader", "reader", "--reading", str(single_answers(args)), *passages, *reader_length)
    reader_weights = str(reader.weights)

    def pretrain(prompting: str) -> Training:
        words = ["--stage", "pretrain", "--prompting", prompting, "--init", reader_weights, "--reader", reader_weights]
        return seed_plan.train(out / f"pretrained-{prompting}", "answerer", *words, *reading, *length)

    def answerer(name: str, start: Training, *words: str, prompting: str = "interleaved") -> dict[str, Training]:
        start_words = ["--prompting", prompting, "--init", str(start.weights)]
        tuned = seed_plan.train(out / name, "answerer", *start_words, *reading, *length, *words)
        return {"answerer": tuned, "reader": reader}

    def judge(table: str, row: str, system: str, weights: dict[str, Training], *tags: str) -> None:
        seed_plan.judged.append(Judged(table, row, system, weights, tags))

    pretrained = pretrain("interleaved")
    ambigprompt = answerer("ambigprompt", pretrained, *all_multi)
    judge("ablations", "AmbigPrompt", args.system, ambigprompt)
    for row, name, prompting in (
        ("w/o prompting model", "no-prompting", "learned"),
        ("w/o interleaving", "no-interleaving", "separate"),
    ):
        judge("ablations", row, args.system, answerer(name, pretrain(prompting), *all_multi, prompting=prompting))
    longer = answerer("no-pretraining", reader, *all_multi, "--steps", str(2 * args.steps))
    judge("ablations", "w/o post-pretraining", args.system, longer)

    init = args.init.replace("READER", reader_weights)

    def seq2seq(name: str, target: str, *words: str) -> Training:
        return seed_plan.train(out / name, "seq2seq", "--target", target, "--init", init, *reading, *words, *length)

    zero_shot = {"answerer": pretrained, "reader": reader}
    single = seq2seq("fid-single", "spliced", "--stage", "pretrain", "--reader", reader_weights)
    judge("zero-shot", "AmbigPrompt", args.system, zero_shot, "zero-shot=true")
    judge("zero-shot", "DPR", "dpr-threshold", {"reader": reader}, "zero-shot=true")
    judge("decoding", "AmbigPrompt", args.system, zero_shot, "zero-shot=true")
    for name in ("fid", "fid-nucleus", "fid-top-k", "fid-diverse-beam"):
        judge("decoding", name, name, {"seq2seq": single, "reader": reader}, "zero-shot=true")

    for share in sorted(args.shares, reverse=True):
        weights = ambigprompt if share == 100 else answerer(f"share-{share:g}", pretrained, *multi_options(share))
        judge("low-resource", f"{share:g}%", args.system, weights)

    step, spliced = seq2seq("loop", "step", *all_multi), seq2seq("one-pass", "spliced", *all_multi)
    for table in ("loop", "multi-span"):
        judge(table, "loop", "ambigprompt-seq2seq", {"answerer": step, "reader": reader})
        judge(table, "one pass", "fid", {"seq2seq": spliced, "reader": reader})
    return seed_plan


def needed_trainings(seed_plan: Plan, tables: Sequence[str]) -> list[Training]:
    """The trainings of these tables, in the order in which they have to be done."""
    weights_read = {str(t.weights) for judged in seed_plan.judged if judged.table in tables for t in judged.weights.values()}
    for training in reversed(seed_plan.trainings):
        if str(training.weights) in weights_read:
            weights_read |= {word.removeprefix("small:") for word in training.words}
    return [t for t in seed_plan.trainings if str(t.weights) in weights_read]


def cost(args: argparse.Namespace) -> str:
    """The amount of computing for all trainings, as text."""
    small = args.init.startswith("small")
    trainings = {t.out: t for seed in args.seeds for t in needed_trainings(plan(args, seed), args.tables)}.values()
    amount = sum(
        operations(t.steps, PARAMETERS["minilm" if small or t.words[0] != "seq2seq" else "t5-base"], args.batch_tokens)
        for t in trainings
    )
    return f"{len(trainings)} trainings of {args.steps} steps, {computing(amount)}, and the judging"


def portion(rows: Sequence[Any], percent: float, seed: int) -> list[Any]:
    """A portion of the rows, at least one.  A smaller portion is part of every larger one."""
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    return [rows[i] for i in sorted(order[: max(1, round(len(rows) * percent / 100))])]


def as_row(e: MultiExample) -> dict[str, Any]:
    """The layout of multi/*.jsonl."""
    passages = [{"id": str(n), "title": title, "text": text} for n, (title, text) in enumerate(e.passages)]
    row = {"question": e.question, "passages": passages, "answers": [list(names) for names in e.gold], "source": e.source}
    return row | {"supporting": [str(n) for n in range(len(e.extra.get("supporting", ())))]}


@cache
def several_answers(data: Path, annotated: tuple[Path, ...]) -> tuple[list[MultiExample], list[Any]]:
    """(questions with their passages, questions of AmbigNQ) that there are to tune on."""
    examples = [e for folder in annotated for e in annotated_examples(folder, held_out=HELD_OUT_SHARE)[0]]
    examples += load_multi([data / "multi" / "train.jsonl.gz"])
    rows = json.loads((data / "ambignq" / "train_light.json").read_text(encoding="utf-8"))
    return examples, [r for r in rows if any(a["type"] == "multipleQAs" for a in r["annotations"])]


def single_answers(args: argparse.Namespace) -> Path:
    return Path(args.data / "reading" / "train.jsonl.gz")


def write_data(args: argparse.Namespace, seed: int) -> None:
    """The training files of a seed, and their numbers of rows; smaller ones are parts of larger ones."""
    folder = args.out / f"seed-{seed}"
    if (folder / "rows.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    reading = [e for e in load_reading([single_answers(args)], seed=seed) if e.title and e.source not in NOT_ALONE]
    reading = portion(reading, 100 * args.limit / len(reading), seed)
    rows = [{**asdict(e), "id": str(n)} for n, e in enumerate(reading)]
    disk.write_text(folder / "reading.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    if not (file := args.out / "passages.tsv").exists():
        with gzip.open(args.data / "passages" / "wiki.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
            head, *others = lines.read().removesuffix("\n").split("\n")
        rows_kept = portion(others, 100 * args.passages / len(others), args.seeds[0]) if args.passages else others
        disk.write_text(file, "\n".join([head, *rows_kept]) + "\n")
    examples, pairs = several_answers(args.data, tuple(args.annotated))
    part = min(1.0, (args.several or len(examples) + len(pairs)) / (len(examples) + len(pairs)))
    counts: dict[str, Any] = {"reading": len(reading)}
    for share in {100.0, *args.shares}:
        examples_part, pairs_part = (portion(source, share * part, seed) for source in (examples, pairs))
        disk.write_text(folder / f"multi-{share:g}.jsonl", "".join(json.dumps(as_row(e)) + "\n" for e in examples_part))
        disk.write_json(folder / f"ambignq-{share:g}.json", pairs_part)
        counts[f"{share:g}%"] = {**Counter(e.source for e in examples_part), "ambignq": len(pairs_part)}
    disk.write_json(folder / "rows.json", counts)


def trained(training: Training, seed: int, device: str) -> None:
    """Raises CalledProcessError."""
    if not (training.weights / "config.json").exists():
        print(f"seed {seed}: {training.out.name}", flush=True)
        run(["train", *training.words, "--out", str(training.out)], device)


def folder_of(args: argparse.Namespace, judged: Judged) -> Path:
    """The run folder of a judged row; rows of two tables can be one evaluation."""
    weights = ["-".join(t.out.relative_to(args.out).parts) for t in judged.weights.values()]
    return Path(args.out / "judged" / "-".join([judged.system, *weights, questions_of(args, judged.table).stem, *judged.tags]))


def report_of(args: argparse.Namespace, judged: Judged) -> dict[str, Any]:
    """The report of a judged row.  Raises RuntimeError if the evaluation fails."""
    words = ["--no-clarify", *(word for tag in judged.tags for word in ("--tag", tag))]
    if "answerer" in judged.weights:
        words += ["--set", "eoi_bias=0"]
    settings = {"device": args.device} | {name: str(t.weights) for name, t in judged.weights.items()}
    questions, folder = questions_of(args, judged.table), folder_of(args, judged)
    report = evaluate(judged.system, questions, folder, args.corpus, words, args.questions_limit, **settings)
    if report is None:
        raise RuntimeError(f"{TABLES[judged.table]}, {judged.row}: not evaluated")
    return report


def submitted(args: argparse.Namespace, pool: Executor) -> dict[str, dict[str, list[Future[dict[str, Any]]]]]:
    """Table -> row -> the report of each seed.  A training waits for those whose weights it reads, a row for its weights."""
    work: dict[Path, Future[Any]] = {}
    tables: dict[str, dict[str, list[Future[dict[str, Any]]]]] = {name: {} for name in args.tables}
    plans = {seed: plan(args, seed) for seed in args.seeds}
    for name in args.tables:
        trainings = {t.out: (t, seed) for seed in args.seeds for t in needed_trainings(plans[seed], [name])}
        dependencies = {
            out: [other for other in trainings if any(str(other / "last") in word for word in training.words)]
            for out, (training, _) in trainings.items()
        }
        # what waits for nothing comes first, over all seeds: a training that waits takes the place of one that could run
        for out in TopologicalSorter(dependencies).static_order():
            if out not in work:
                training, seed = trainings[out]
                work[out] = pool.submit(after, [work[o] for o in dependencies[out]], trained, training, seed, args.device)
        for judged in (j for seed_plan in plans.values() for j in seed_plan.judged if j.table == name):
            if (folder := folder_of(args, judged)) not in work:
                work[folder] = pool.submit(after, [work[t.out] for t in judged.weights.values()], report_of, args, judged)
            tables[name].setdefault(judged.row, []).append(work[folder])
    return tables


def after(dependencies: Sequence[Future[Any]], call: Callable[..., T], *arguments: Any) -> T:
    """The result of `call` once its dependencies are done.  They were submitted earlier, so one of them is always running.
    Raises what they raise."""
    for dependency in dependencies:
        dependency.result()
    return call(*arguments)


def questions_of(args: argparse.Namespace, table: str) -> Path:
    """The questions that a table is judged on."""
    return multi_span(args) if table == "multi-span" else Path(args.questions)


def multi_span(args: argparse.Namespace) -> Path:
    """The multi-span questions of DATA/multi/dev, each with its one passage."""
    file: Path = args.out / "multi-span.jsonl"
    if not file.exists():
        with gzip.open(args.data / "multi" / "dev.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [line for line in lines if json.loads(line)["source"] in MULTI_SPAN]
        disk.write_text(file, "".join(rows))
    return file


def by_answers(rows: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """The ids of questions by how many of their answers one of their passages has."""
    ids_by_group: dict[str, set[str]] = {}
    for row in rows:
        count = max(covered([p["text"]], row["answers"]) for p in row["passages"])
        name = "three or more answers" if count > 2 else "two answers" if count == 2 else "one answer, or none"
        ids_by_group.setdefault(name, set()).add(row["id"])
    return ids_by_group


def values(reports: Sequence[dict[str, Any]], multi: bool) -> list[float]:
    """F1 of each question, the mean over the seeds' reports; a failed question has 0."""
    rows = zip(*([r for r in report["rows"] if r["ambiguous"] or not multi] for report in reports))
    return [fmean((r.get("metrics") or {}).get("F1 answer") or 0.0 for r in same_question) for same_question in rows]


def difference(comparison: Comparison) -> str:
    """A difference in points with its interval: `+1.2 [-0.9, +3.3]`."""
    interval_text = (
        f" [{100 * comparison.interval[0]:+.1f}, {100 * comparison.interval[1]:+.1f}]" if comparison.interval else ""
    )
    return f"{100 * (comparison.difference or 0):+.1f}{interval_text}"


def table(rows: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """A table in Markdown: F1 over all and ambiguous questions with intervals, each seed, and the difference from the first row."""
    first_reports = next(iter(rows.values()))
    first, has_seeds = values(first_reports, False), len(first_reports) > 1
    differences = corrected({name: compare_values(values(row, False), first) for name, row in list(rows.items())[1:]})
    heads = ["row", "F1 all", "F1 multi", *(["seeds, all"] if has_seeds else []), "from the first row", "p (Holm)"]
    lines = []
    for name, reports in rows.items():
        cells = [name, mean_points(values(reports, False)), mean_points(values(reports, True))]
        if has_seeds:
            cells.append(", ".join(points(fmean(values([report], False))) for report in reports))
        d = differences.get(name)
        lines.append([*cells, *([difference(d.comparison), f"{d.holm:.4f}"] if d else ["", ""])])
    return markdown_table(heads, lines)


def groups(rows: Mapping[str, Sequence[dict[str, Any]]], questions: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The table once more for each number of answers in one passage."""
    for group, ids in sorted(by_answers(questions).items()):
        part = {
            n: [{"rows": [r for r in report["rows"] if r["id"] in ids]} for report in reports] for n, reports in rows.items()
        }
        if count := len(next(iter(part.values()))[0]["rows"]):
            yield f"\n### {group} in the passage, {count} questions\n\n{table(part)}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="holds reading/, multi/, ambignq/ and passages/")
    parser.add_argument("--annotated", type=Path, nargs="*", default=list(PRACTICE_FOLDERS), metavar="FOLDER")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=5000, help="of each training (default: %(default)s, as in the paper)")
    parser.add_argument("--reader-steps", type=int, default=0, help="of the reader that all start from (default: as many)")
    parser.add_argument("--batch-tokens", type=int, default=BATCH_TOKENS, help="of a step (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES), metavar="TABLE")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="single-answer questions beside the reader's (default: %(default)s)"
    )
    parser.add_argument("--several", type=int, default=0, help="multi-answer questions that are 100%% (default: all)")
    parser.add_argument("--passages", type=int, default=0, help="of Wikipedia, for context (default: all)")
    parser.add_argument("--shares", type=float, nargs="*", default=[1, 10, 100], help="percent of the multi-answer data")
    parser.add_argument("--init", default="small:READER", help="encoder-decoder of the loop and of fid; READER: the reader")
    parser.add_argument("--system", default="ambigprompt", help="that the span models answer in (default: %(default)s)")
    parser.add_argument("--questions", type=Path, default=ROOT / "data" / "starter" / "questions.json")
    parser.add_argument("--questions-limit", type=int, default=0)
    parser.add_argument("--corpus", default="starter")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "runs" / "paper")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="processes: several on a GPU (default: %(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args(argv)
    args.data, args.out = args.data.resolve(), args.out.resolve()
    print(cost(args), flush=True)
    if args.dry_run:
        for training in needed_trainings(plan(args, args.seeds[0]), args.tables):
            print(f"core train {' '.join(training.words)}")
        return 0
    for seed in args.seeds:
        write_data(args, seed)
    pool = ThreadPoolExecutor(args.at_once)
    try:
        for name, futures_by_row in submitted(args, pool).items():
            rows = {row: [future.result() for future in futures] for row, futures in futures_by_row.items()}
            print(f"\n## {TABLES[name]}\n\n{table(rows)}", flush=True)
            if name == "multi-span":
                print("\n".join(groups(rows, (row for _, row in json_io.read_lines(multi_span(args))))))
    finally:
        pool.shutdown(cancel_futures=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
