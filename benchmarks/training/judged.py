"""What judged questions bring: the default system's reranker fitted near its weights on 25, 50, 100 and 200 questions of another source, F1 before and after.

    python -m benchmarks.training.judged --multi TRAIN --dev DEV --out FOLDER --quick [--source multispanqa] [--counts 25 50 100 200] [--draws 5]
    [--order random uncertain]

    python -m benchmarks.training.judged --by-hand data/documentation --out FOLDER

Gold answers of the train part stand for what a person would judge.  The fit is the loop's first stage (core.training.judgments).  F1 on the dev part of
the same source: of each question the mean over the draws, against the present weights, with a 95% paired bootstrap interval over questions.  `--order uncertain`: of the
questions of a draw those are judged first of which the system is least certain, as a project's queue has them (core.metrics.calibration.margin); with both
orders the last column is what that brings more than judging as many at random, the same draws paired.  Without
--dev the train questions outside the pool that is drawn from are asked instead: for choices between ways to fit.  `--by-hand` takes the questions that
somebody judged on a corpus (questions.jsonl, passages.tsv), `--new` those of --dev, which no model was trained on: of five parts each is asked after a fit to the
four others, against the present weights.  `--calibrate` fits a calibration instead.  FOLDER keeps what the models said and
each fit, so that the same command goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from core.engine import Engine
from core.errors import CheckpointError, InputError
from core.evaluation.folder import trim
from core.metrics.calibration import margin
from core.metrics.significance.bootstrap import compare
from core.models.ranking.calibration import Calibration
from core.models.ranking.reranker import Kind, Weights, read_weights
from core.models.scheduling.device import bf16_autocast, pick_device
from core.settings import OFF, Settings, quiet_libraries
from core.systems.base.options import Options
from core.training.calibration import RecordedRun, fit_calibration, reliable
from core.training.data.examples import read_multi
from core.training.data.held_out_passages import own_passages
from core.training.judgments import FOLDS, SHIFTS, fit_near, near, recorded
from core.training.logit import Logit, with_parameters
from core.training.output_cache import cached_outputs
from core.training.reranker import LoopRuns, Runs, runs_of
from core.types import Candidate

SYSTEM = "ambiscope"
ORDERS = ("random", "uncertain")
SHARE = 0.8  # of a draw's questions, from which the least certain are taken
SOURCES = ("multispanqa", "quotesum", "ramdocs", "asqa")
Row = dict[str, Any]


def order_of(row: Row) -> str:
    """The order in which a row's questions were judged; rows of before there were two say none."""
    return str(row.get("order", "random"))


class Kept:
    """The rows of FOLDER: the fits that are done."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "rows.jsonl"
        trim(self.file)
        self.about = folder / "about.json"
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        self.rows: list[Row] = [json.loads(line) for line in lines]

    def claim(self, about: Row) -> None:
        """Notes what the rows are made of.  Raises InputError where they are made of something else."""
        known = json.loads(self.about.read_text(encoding="utf-8")) if self.about.exists() else about
        if wrong := [name for name in about if known.get(name) != about[name]]:
            raise InputError(f"{self.file.parent} holds fits with another {', '.join(wrong)}; give another --out")
        self.about.write_text(json.dumps(about), encoding="utf-8")

    def has(self, source: str, count: int, draw: int, order: str = "random") -> bool:
        return any((r["source"], r["count"], r["draw"], order_of(r)) == (source, count, draw, order) for r in self.rows)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def by_hand(engine: Engine, folder: Path, draws: int) -> list[str]:
    """F1 of judged questions over their corpus, each part after a fit to the others: a line a question, and what the fits bring."""
    examples, name = list(read_multi(folder / "questions.jsonl")), folder.resolve().name
    engine.library.create(name, [folder / "passages.tsv"])
    passages = engine.corpus(name).search_many([e.question for e in examples], engine.settings.top_k)
    runs, present = runs_over(engine, (examples, passages), name)
    answers = [runs.answers(i, present) for i in range(len(examples))]
    before, after, line = crossed(runs, present, range(draws))
    lines = [
        f"{100 * x:.0f}\t{100 * y:.0f}\t{e.question}\t{a}" for x, y, e, a in zip(before, after, examples, answers, strict=True)
    ]
    return [*lines, line]


def crossed(runs: Runs, present: Weights, seeds: Sequence[int]) -> tuple[list[float], list[float], str]:
    """(F1 of each question; F1 after a fit to other questions; what to print).  Of five parts each is asked after a fit to the four others; with
    several seeds, of as many divisions the mean."""
    order, kept = list(range(len(runs.examples))), list[bool]()
    before, after = list(runs.f1(order, present).values()), [0.0] * len(order)
    for seed in seeds:
        drawn = random.Random(seed).sample(order, len(order))
        for part in (drawn[i::FOLDS] for i in range(FOLDS)):
            fit = fit_near(runs, present, ids=[i for i in drawn if i not in part])
            kept.append(fit.kept)
            for i, score in runs.f1(part, fit.weights).items():
                after[i] += score / len(seeds)
    old, new = (f"{100 * sum(scores) / len(scores):.1f}" for scores in (before, after))
    line = f"{len(order)} questions, F1 {old}, after a fit to four fifths {new}: {_difference(after, before)}; {sum(kept)} of {len(kept)} kept"
    return before, after, line


def runs_over(engine: Engine, found: Any, corpus: str = "") -> tuple[LoopRuns, Weights]:
    """The runs of these questions, and the reranker that the system has for them.  `corpus`: "" where they bring their passages."""
    verified = engine.settings.verifier != OFF
    runs, about = runs_of(engine, SYSTEM, *found, [corpus] * len(found[0]), verified, lambda _: None)
    assert isinstance(runs, LoopRuns), f"{SYSTEM} is a loop"
    kind: Kind = ("retrieved_verified" if verified else "retrieved") if corpus else ("own_verified" if verified else "own")
    weights = read_weights(about["folder"], kind, SYSTEM)
    if weights is None:
        raise CheckpointError(f"{SYSTEM} has no reranker {kind}: there is nothing to fit near")
    return runs, weights


def measure(kept: Kept, engine: Engine, args: argparse.Namespace, source: str) -> None:
    """All draws of a source: the small counts first."""
    most = args.pool if args.dev else args.pool + args.test
    train = own_passages(engine, [args.multi], most, sources=[source])
    pool, rest = (tuple(part[where] for part in train) for where in (slice(args.pool), slice(args.pool, None)))
    if not args.dev and not rest[0]:
        raise InputError(f"{source} has no question left to test on; lower --pool, or give --dev")
    asked, present = runs_over(engine, own_passages(engine, [args.dev], sources=[source]) if args.dev else rest)
    judged, _ = runs_over(engine, pool)
    everything = range(len(asked.examples))
    if args.ways:
        print("\n".join(compare_ways(args, judged, asked, present, shuffled(args, source, 0, len(pool[0])))), flush=True)
        return
    if not kept.has(source, 0, 0):
        kept.add(
            {"source": source, "count": 0, "draw": 0, "pool": len(pool[0]), "f1": list(asked.f1(everything, present).values())}
        )
    certain = margins(judged, present, calibration_of(engine)) if "uncertain" in args.order else {}
    for count in sorted(c for c in args.counts if c <= len(pool[0])):
        for draw, order in product(range(args.draws), args.order):
            if kept.has(source, count, draw, order):
                continue
            ids = shuffled(args, source, draw, len(pool[0]))
            if order == "uncertain":
                ids = uncertain_first(ids, certain)
            if len(ids) < count:
                continue
            fit = fit_near(judged, present, ids=ids[:count])
            scores = list(asked.f1(everything, fit.weights).values())
            kept.add({"source": source, "count": count, "draw": draw, "order": order, **fit.to_json(), "f1": scores})
            print(f"{source} {count} {order} draw {draw}: {fit.to_json()}, {100 * sum(scores) / len(scores):.1f}", flush=True)


def calibrated(engine: Engine, args: argparse.Namespace) -> list[str]:
    """What a calibration fitted to the judged questions of all sources makes of the errors of the questions that are asked: a line a kind."""
    fitted, asked = [], []
    for source in args.source:
        for file, most, into in ((args.multi, args.pool, fitted), (args.dev, 0, asked)):
            runs, present = runs_over(engine, own_passages(engine, [file], most, sources=[source]))
            into += recorded(runs, present)
    found = reliable(asked, [fit_calibration(fitted)] * len(asked))
    return [f"{kind}: {json.dumps(values)}" for kind, values in found.items()]


def calibration_of(engine: Engine) -> Calibration | None:
    """The calibration that the system has for questions that bring their passages."""
    system: Any = engine.system(SYSTEM, None, Options(clarify=False), own_passages=True)
    found: Calibration | None = system.stopping.calibration
    return found


def margins(runs: LoopRuns, weights: Weights, calibration: Calibration | None) -> dict[int, float]:
    """How certain the system is of each question: 0 where it is least."""
    return {int(run.id): margin_of(run, calibration) for run in recorded(runs, weights)}


def margin_of(run: RecordedRun, calibration: Calibration | None) -> float:
    """Of the steps up to where the run would have ended."""
    decisions = []
    for number, turn in enumerate(t for t in run.turns if t.candidates):
        best = Candidate(*turn.candidates[0])
        if calibration is None:
            decisions.append((best.probability, turn.eoi))
        else:
            (shown,) = calibration.candidates([best], turn.eoi, number > 0)
            decisions.append((shown.probability, calibration.nothing_left(turn.eoi, number > 0)))
        if turn.eoi >= best.probability:
            break
    return margin(decisions, calibration is not None) or 0.0


def uncertain_first(ids: Sequence[int], certain: Mapping[int, float]) -> list[int]:
    """The first SHARE of a draw, which makes draws differ, the least certain question first."""
    return sorted(ids[: round(SHARE * len(ids))], key=lambda i: certain.get(i, 0.0))


def ways(judged: Runs, present: Weights, ids: Sequence[int]) -> dict[str, Weights]:
    """Other ways to fit these questions, without the gate that keeps only what helps held-out ones."""
    judged.f1(ids, present)  # collects the steps
    steps = Logit.of(judged.steps(ids), present)
    shifted = {f"bias {shift:+.1f}": replace(present, bias=present.bias + shift) for shift in SHIFTS}
    return shifted | {f"pull {pull:g}": with_parameters(present, near(steps, present, pull)) for pull in (10.0, 1.0)}


def compare_ways(args: argparse.Namespace, judged: Runs, asked: Runs, present: Weights, order: Sequence[int]) -> list[str]:
    """One line a way, fitted to the largest count of the first draw."""
    ids = order[: max(args.counts)]
    first = list(asked.f1(range(len(asked.examples)), present).values())
    lines = ["| way | F1 of the judged questions | F1 | difference |", "|---|--:|--:|---|"]
    for name, weights in ways(judged, present, ids).items():
        own, values = judged.f1(ids, weights).values(), list(asked.f1(range(len(first)), weights).values())
        said = _difference(values, first)
        lines.append(f"| {name} | {100 * sum(own) / len(own):.1f} | {100 * sum(values) / len(values):.1f} | {said} |")
    return lines


def _difference(after: Sequence[float], before: Sequence[float]) -> str:
    found = compare(after, before)
    low, high = found.interval or (0.0, 0.0)
    return f"{100 * (found.difference or 0):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def shuffled(args: argparse.Namespace, source: str, draw: int, n: int) -> list[int]:
    """The questions of a draw in order: a larger count holds the smaller one."""
    order = list(range(n))
    random.Random(f"{args.seed} {source} {draw}").shuffle(order)
    return order


def table(rows: Sequence[Row], draws: int) -> list[str]:
    """One line a source, count and order whose draws are all there."""
    lines = [
        "| source | judged | order | draws kept | F1 before | F1 after | difference | questions | against random |",
        "|---|--:|---|--:|--:|--:|---|--:|---|",
    ]
    for first in (r for r in rows if not r["count"]):
        own = [r for r in rows if r["source"] == first["source"] and r["count"]]
        for count in sorted({r["count"] for r in own}):
            found: dict[str, list[float]] = {}
            for order in ORDERS:
                drawn = [r for r in own if (r["count"], order_of(r)) == (count, order)]
                if len(drawn) < draws:
                    continue
                after = found[order] = [sum(values) / len(values) for values in zip(*(r["f1"] for r in drawn), strict=True)]
                more = _difference(after, found["random"]) if order != "random" and "random" in found else ""
                lines.append(
                    f"| {first['source']} | {count} | {order} | {sum(r['kept'] for r in drawn)} of {len(drawn)} | "
                    f"{100 * sum(first['f1']) / len(after):.1f} | {100 * sum(after) / len(after):.1f} | {_difference(after, first['f1'])} | "
                    f"{len(after)} | {more} |"
                )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--multi", type=Path, metavar="FILE", help="questions that are judged")
    what.add_argument("--by-hand", type=Path, metavar="FOLDER", help="questions that somebody judged on a corpus")
    parser.add_argument("--dev", type=Path, metavar="FILE", help="questions of the same sources to test on")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--source", nargs="+", default=SOURCES, metavar="NAME")
    parser.add_argument("--counts", type=int, nargs="+", default=[25, 50, 100, 200])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--order", nargs="+", choices=ORDERS, default=["random"], help="which questions are judged first")
    parser.add_argument("--pool", type=int, default=250, help="questions of a source to draw from")
    parser.add_argument("--test", type=int, default=100, help="without --dev: questions of a source to test on")
    parser.add_argument(
        "--ways", action="store_true", help="compare ways to fit the largest count of the first draw, ungated, instead"
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="fit a calibration to the judged questions instead, and say its error on --dev"
    )
    parser.add_argument(
        "--new",
        action="store_true",
        help="let four fifths of --dev be judged instead, which no model was trained on, and ask the others",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="read in bf16 where it is native")
    args = parser.parse_args(argv)
    if (args.calibrate or args.new) and not (args.multi and args.dev):
        parser.error("--calibrate and --new need --multi and --dev")
    settings = Settings.from_env()
    engine = Engine(settings)
    kept = Kept(args.out)
    kept.claim({name: str(getattr(args, name)) for name in ("multi", "dev", "pool", "test", "seed", "quick")})
    with ExitStack() as how:
        how.enter_context(cached_outputs(args.out / "outputs.sqlite"))
        if args.quick:
            how.enter_context(bf16_autocast(pick_device(settings.device)))
        if args.by_hand:
            print("\n".join(by_hand(engine, args.by_hand, args.draws)))
            return 0
        if args.new:
            for source in args.source:
                own = runs_over(engine, own_passages(engine, [args.dev], sources=[source]))
                print(source, crossed(*own, range(args.draws))[2], flush=True)
            return 0
        if args.calibrate:
            print("\n".join(calibrated(engine, args)))
            return 0
        for source in args.source:
            measure(kept, engine, args, source)
            print("\n".join(table(kept.rows, args.draws)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
