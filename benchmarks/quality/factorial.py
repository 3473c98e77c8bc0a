"""What iterating brings, what the reranker and what the verifier: six systems, each with no rescoring, with a reranker, and with a reranker and a verifier.

    python -m benchmarks.quality.factorial [--multi DATA/multi/dev.jsonl.gz] [--limit N] [--out var/runs/factorial]

Each reranker was fitted by one command on practice questions held out from training (`python -m core train reranker --system NAME`).  Only questions
that every system has answered are compared.  A run that has its report is not repeated: give another --out after a change.  Prints the tables as
Markdown.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.evaluating import evaluate, points
from benchmarks.shipped_runs import corpus_of
from core import types as t
from core.datasets import load
from core.engine import Engine
from core.metrics.significance.bootstrap import compare, interval
from core.settings import ROOT, Settings, quiet_libraries
from core.text import find_spans

SYSTEMS = ("one-pass", "dpr-threshold", "jpr", "rectify", "verdict", "ambigprompt")
ADDITIONS = {"none": "nothing", "reranker": "reranker", "verifier": "reranker and verifier"}
DEFAULT = ("ambiscope", "all")
CELLS = (*((system, added) for system in SYSTEMS for added in ADDITIONS), DEFAULT)
ONE_PASS, LOOP = "dpr-threshold", "ambigprompt"  # what iterating is measured between
Cell = tuple[str, str]


@dataclass
class Compared:
    """A set of questions: F1 of each by cell, whether it has several answers, and the most answers that one of its passages holds."""

    name: str
    f1: dict[Cell, list[float]] = field(default_factory=lambda: {cell: [] for cell in CELLS})
    several: list[bool] = field(default_factory=list)
    in_one_passage: list[int] = field(default_factory=list)


def most_in_one_passage(question: t.ReferenceQuestion, passages: Sequence[t.Passage]) -> int:
    """The most reference answers that one of the passages holds."""
    counts = (
        sum(any(find_spans(p.text, alias) for alias in pair.answers) for pair in a.pairs)
        for p in passages
        for a in question.annotations
    )
    return max(counts, default=0)


def measured(name: str, questions: Path, corpus: str, engine: Engine, out: Path, limit: int) -> Compared:
    """Raises RuntimeError where a system cannot be evaluated."""
    compared, scores = Compared(name), dict[Cell, dict[str, float]]()
    for system, added in CELLS:
        words = ["--no-clarify", *([] if (system, added) == DEFAULT else ["--set", f"additions={added}"])]
        report = evaluate(system, questions, out / f"{name}-{system}-{added}", corpus or "starter", words, limit)
        if report is None:
            raise RuntimeError(f"{system} with additions={added} could not be evaluated over {questions.name}")
        scores[system, added] = {r["id"]: r["metrics"]["F1 answer"] for r in report["rows"] if not r.get("error")}
    asked = [q for q in load(questions) if all(q.id in found for found in scores.values())]
    if corpus:
        passages = [[p.passage for p in found] for found in engine.corpus(corpus).search_many([q.question for q in asked], 10)]
    else:
        passages = [list(q.passages or ()) for q in asked]
    for question, read in zip(asked, passages, strict=True):
        compared.several.append(question.ambiguous)
        compared.in_one_passage.append(most_in_one_passage(question, read))
        for cell, found in scores.items():
            compared.f1[cell].append(found[question.id])
    return compared


def signed(a: Sequence[float], b: Sequence[float]) -> str:
    """a minus b in points, with the paired 95% interval."""
    found = compare(a, b)
    between = f" [{100 * found.interval[0]:+.1f}, {100 * found.interval[1]:+.1f}]" if found.interval else ""
    return "–" if found.difference is None else f"{100 * found.difference:+.1f}{between}"


def of_set(compared: Compared) -> Iterator[str]:
    def cell(key: Cell) -> str:
        values = compared.f1[key]
        multi = [v for v, several in zip(values, compared.several) if several]
        return f"{points(statistics.fmean(values), interval(values))} / {points(statistics.fmean(multi) if multi else None)}"

    yield f"\n## {compared.name}: {len(compared.several)} questions, {sum(compared.several)} with several answers\n"
    yield "| system | " + " | ".join(ADDITIONS.values()) + " |\n|---|" + "--:|" * len(ADDITIONS)
    for system in SYSTEMS:
        yield f"| `{system}` | " + " | ".join(cell((system, added)) for added in ADDITIONS) + " |"
    yield f"| `ambiscope`, the default | | | {cell(DEFAULT)} |"


def what_it_brings(sets: Sequence[Compared]) -> Iterator[str]:
    """Differences over all sets together, over each, and by the answers in one passage."""
    f1 = {cell: [v for s in sets for v in s.f1[cell]] for cell in CELLS}
    held = [n for s in sets for n in s.in_one_passage]
    names = [s.name for s in sets for _ in s.several]
    groups = {"all": [True] * len(held)} | {s.name: [n == s.name for n in names] for s in sets}

    def some(cell: Cell, wanted: Sequence[bool]) -> list[float]:
        return [v for v, w in zip(f1[cell], wanted) if w]

    yield "\n## What each addition brings\n\nPoints of F1, all systems together, paired 95% intervals over questions.\n"
    yield "| questions | n | reranker | verifier beside it |\n|---|--:|--:|--:|"
    for name, wanted in groups.items():
        none, reranked, verified = (
            [statistics.fmean(row) for row in zip(*(some((system, added), wanted) for system in SYSTEMS))]
            for added in ADDITIONS
        )
        yield f"| {name} | {sum(wanted)} | {signed(reranked, none)} | {signed(verified, reranked)} |"
    yield f"\n## What iterating brings\n\n`{LOOP}` minus `{ONE_PASS}` with the same additions: points of F1, paired 95% intervals.\n"
    yield "| questions | n | " + " | ".join(ADDITIONS.values()) + " |\n|---|--:|" + "--:|" * len(ADDITIONS)
    for name, low, high in (("at most one answer", 0, 1), ("two answers", 2, 2), ("three or more answers", 3, 99)):
        groups[f"{name} in one passage"] = [low <= n <= high for n in held]
    for name, wanted in groups.items():
        if any(wanted):
            cells = (signed(some((LOOP, added), wanted), some((ONE_PASS, added), wanted)) for added in ADDITIONS)
            yield f"| {name} | {sum(wanted)} | " + " | ".join(cells) + " |"


def main(argv: Sequence[str] | None = None) -> None:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi", type=Path, help="questions that bring their passages: JSONL(.gz)")
    parser.add_argument("--limit", type=int, default=0, help="the first so many questions of each set (0: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "runs" / "factorial")
    args = parser.parse_args(argv)
    engine = Engine(Settings.from_env())
    files = [(name, ROOT / "data" / name / "questions.json") for name in ("starter_test", "starter")]
    sets = [(name, file, corpus_of(file, engine.library)) for name, file in files]
    sets += [("multi", args.multi, "")] if args.multi else []
    compared = [measured(name, file, corpus, engine, args.out, args.limit) for name, file, corpus in sets]
    print("\n".join([*(line for c in compared for line in of_set(c)), *what_it_brings(compared)]))


if __name__ == "__main__":
    main()
