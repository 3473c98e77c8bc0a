"""What iterating brings, what the reranker and what the verifier: six systems, each with nothing added, with a reranker, and with a reranker and a verifier.

    python -m benchmarks.quality.factorial [--multi DATA/multi/dev.jsonl.gz] [--every N] [--practice N] [--sets SET ...] [--seconds N] [--page FILE]
    python -m benchmarks.quality.factorial --only-page benchmarks/results/additions.md

Each reranker was fitted by one command on the same practice questions held out from training (`python -m core train reranker --system NAME`); the practice questions
here are others.  Question by question, all systems after one another: what models say is kept (core.training.output_cache), so that a passage is read once for all of them.
A row for each question and system lies in AMBISCOPE_HOME/factorial/rows.jsonl, with commit and weights; the same command goes on where it was, and asks
again where weights or code of a system have changed.  The page compares only questions that every system has answered.  Models read in bf16 where it is
native; the seconds are of a few questions asked without what is kept, in full precision.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.shipped_runs import corpus_of
from core import disk
from core import types as t
from core.datasets import load
from core.engine import Engine
from core.errors import AmbiscopeError, InputError
from core.evaluation.report import build_provenance
from core.metrics.answers import f1
from core.metrics.significance.bootstrap import compare, interval
from core.models.scheduling.device import bf16_autocast
from core.settings import ROOT, Settings, quiet_libraries
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.text import find_spans
from core.training.data.held_out_passages import WRITTEN, held_out_passages
from core.training.output_cache import cached_outputs

SYSTEMS = ("one-pass", "dpr-threshold", "jpr", "rectify", "verdict", "ambigprompt")
ADDITIONS = ("none", "reranker", "verifier")
SAID = {"none": "nothing", "reranker": "reranker", "verifier": "reranker and verifier"}
CELLS = (*((system, added) for system in SYSTEMS for added in ADDITIONS), ("ambiscope", "all"))
SETS = {
    "test": "`data/starter_test`",
    "starter": "`data/starter`",
    "practice": "held-out practice questions",
    "multi": "multi/dev",
}
FITTED = 540  # practice questions that rerankers may have been fitted on: none of them is asked here
ONCE, LOOP = "dpr-threshold", "ambigprompt"  # what iterating is measured between
Cell = tuple[str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question of a set; `corpus`: "" where it brings its passages."""

    set: str
    id: str
    question: t.Question
    corpus: str
    source: str
    references: tuple[tuple[tuple[str, ...], ...], ...]

    @property
    def key(self) -> str:
        return f"{self.set}/{self.id}"


def from_file(name: str, path: Path, corpus: str, every: int) -> list[Asked]:
    return [
        Asked(
            name,
            q.id,
            t.Question(q.question, passages=q.passages),
            corpus,
            str(q.extra.get("source") or name),
            tuple(tuple(p.answers for p in a.pairs) for a in q.annotations if a.pairs),
        )
        for q in load(path)[::every]
        if q.passages is None or q.passages
    ]


def written_by_us(engine: Engine, name: str, every: int) -> list[Asked]:
    """`data/starter`, or the test set beside it, whose corpus is built if need be."""
    questions = ROOT / "data" / ("starter_test" if name == "test" else name) / "questions.json"
    return from_file(name, questions, corpus_of(questions, engine.library), every)


def practice(engine: Engine, count: int, seed: int) -> list[Asked]:
    """Held-out questions that no reranker was fitted on, drawn evenly from the folders."""
    examples, _ = held_out_passages(engine, WRITTEN, 1, count, seed, FITTED)
    return [
        Asked("practice", f"{e.extra['folder']}-{i}", t.Question(e.question), e.extra["folder"], e.extra["folder"], (e.gold,))
        for i, e in enumerate(examples)
    ]


class Rows:
    """The rows that were made, one a question and cell; the last one of each counts."""

    def __init__(self, file: Path) -> None:
        self.file, self.found = file, dict[tuple[str, str, str], Row]()
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):  # the last one, cut short
                    row = json.loads(line)
                    self.found[row["key"], row["system"], row["additions"]] = row

    def add(self, row: Row) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
        self.found[row["key"], row["system"], row["additions"]] = row


class Systems:
    """The systems of all cells over all corpora, built when they are asked for."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._built = engine, dict[tuple[Cell, str], t.AnsweringSystem]()
        self._commit = ""

    def commit(self, info: t.SystemInfo) -> str:
        self._commit = self._commit or str(build_provenance(info, 0, 1, ())["commit"])
        return self._commit

    def __call__(self, cell: Cell, corpus: str) -> t.AnsweringSystem:
        if (cell, corpus) not in self._built:
            options = Options(clarify=False, extra={"additions": cell[1]})
            self._built[cell, corpus] = self.engine.system(cell[0], corpus or None, options, own_passages=not corpus)
        return self._built[cell, corpus]


def made_with(info: t.SystemInfo) -> str:
    """A digest of all that decides a system's answers, but the code."""
    body = json.dumps([info.name, info.settings, info.corpus_digest, info.checkpoint_digest], sort_keys=True, default=str)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def weights_of(info: t.SystemInfo) -> Row:
    """Digests of what answers: the system's model, the reader and the verifier where it has them, and its reranker."""
    of_reranker = json.dumps(info.settings.get("reranking"), sort_keys=True).encode()
    return {
        "checkpoint": info.checkpoint_digest,
        "reader": info.settings.get("reader_digest", ""),
        "verifier": info.settings.get("verifier_digest", ""),
        "reranker": hashlib.sha256(of_reranker).hexdigest()[:16] if info.settings.get("reranking") else "",
    }


def in_one_passage(asked: Asked, passages: Sequence[t.RetrievedPassage]) -> int:
    """The most reference answers that one of the passages holds."""
    return max(
        (
            sum(any(find_spans(p.passage.text, alias) for alias in aliases) for aliases in answers)
            for p in passages
            for answers in asked.references
        ),
        default=0,
    )


def ask(systems: Systems, asked: Asked, cell: Cell, known: Row | None) -> Row | None:
    """A row, or None where it is known; an error in place of answers where the system cannot answer."""
    row: Row = {
        "key": asked.key,
        "set": asked.set,
        "source": asked.source,
        "system": cell[0],
        "additions": cell[1],
        "made": "",
    }
    row |= {"references": max(len(r) for r in asked.references), "answers": None, "f1": None}
    try:
        system = systems(cell, asked.corpus)
        row |= {"made": made_with(system.info), "commit": systems.commit(system.info), **weights_of(system.info)}
        if known is not None and known["made"] == row["made"]:
            return None
        prediction = answer(system, asked.question)
    except AmbiscopeError as error:
        return row | {"error": str(error)}
    given = [a.text for a in prediction.answers]
    best = max(f1(own, given) for own in asked.references)
    return row | {"answers": given, "f1": best, "in_one_passage": in_one_passage(asked, prediction.passages)}


def run(systems: Systems, questions: Sequence[Asked], rows: Rows, device: str) -> None:
    with (
        cached_outputs(rows.file.with_name("kept.db")),
        bf16_autocast(torch.device("cuda" if device.startswith("cuda") else "cpu")),
    ):
        for number, asked in enumerate(questions, 1):
            for cell in CELLS:
                if (row := ask(systems, asked, cell, rows.found.get((asked.key, *cell)))) is not None:
                    rows.add(row)
            print(f"{number} of {len(questions)}: {asked.key}", flush=True)


def measure(systems: Systems, questions: Sequence[Asked], rows: Rows) -> None:
    """Seconds of each cell, the systems in turn on each question, after one question that is not counted."""
    for number, asked in enumerate(questions):
        for cell in CELLS:
            took = answer(systems(cell, asked.corpus), asked.question).seconds
            if number:
                rows.add({"key": f"seconds/{asked.key}", "system": cell[0], "additions": cell[1], "seconds": took})


# ---------------------------------------------------------------- the page


def points(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def signed(a: Sequence[float], b: Sequence[float]) -> str:
    """a minus b in points, with the paired 95% interval."""
    found = compare(a, b)
    between = f" [{100 * found.interval[0]:+.1f}, {100 * found.interval[1]:+.1f}]" if found.interval else ""
    return "–" if found.difference is None else f"{100 * found.difference:+.1f}{between}"


class Table:
    """The rows of the questions that every cell has answered."""

    def __init__(self, rows: Rows) -> None:
        self.found = rows.found
        keys = list(dict.fromkeys(key for key, *_ in rows.found if not key.startswith("seconds/")))
        self.keys = [k for k in keys if all(self.found.get((k, *cell), {}).get("f1") is not None for cell in CELLS)]

    def values(self, cell: Cell, keys: Sequence[str]) -> list[float]:
        return [float(self.found[k, *cell]["f1"]) for k in keys]

    def some(self, wanted: Callable[[Row], bool]) -> list[str]:
        return [k for k in self.keys if wanted(self.found[k, ONCE, "none"])]

    def lines(self) -> Iterator[str]:
        for name, said in SETS.items():
            keys = self.some(lambda row, name=name: row["set"] == name)
            if keys:
                yield from self.of_set(f"{said[0].upper()}{said[1:]}", keys)
        yield from self.what_it_brings()
        yield from self.seconds()

    def of_set(self, said: str, keys: Sequence[str]) -> Iterator[str]:
        multi = [k for k in keys if self.found[k, ONCE, "none"]["references"] > 1]
        yield f"\n## {said}: {len(keys)} questions, {len(multi)} with several answers\n"
        yield "| system | " + " | ".join(SAID[a] for a in ADDITIONS) + " |\n|---|" + "--:|" * len(ADDITIONS)
        for system in SYSTEMS:
            yield f"| `{system}` | " + " | ".join(self.cell((system, a), keys, multi) for a in ADDITIONS) + " |"
        yield f"| `ambiscope`, the default | | | {self.cell(('ambiscope', 'all'), keys, multi)} |"

    def cell(self, cell: Cell, keys: Sequence[str], multi: Sequence[str]) -> str:
        values = self.values(cell, keys)
        low, high = interval(values) or (None, None)
        of_multi = self.values(cell, multi)
        mean = points(statistics.fmean(of_multi) if of_multi else None)
        return f"{points(statistics.fmean(values))} [{points(low)}, {points(high)}] / {mean}"

    def what_it_brings(self) -> Iterator[str]:
        sets = [(said, self.some(lambda row, name=name: row["set"] == name)) for name, said in SETS.items()]
        groups = [("all", self.keys), *((said, keys) for said, keys in sets if keys)]
        yield "\n## What each addition brings\n\nPoints of F1, all systems together, paired 95% intervals over questions.\n"
        yield "| questions | n | reranker | verifier beside it |\n|---|--:|--:|--:|"
        for said, keys in groups:
            none, some, both = ([self.mean(a, k) for k in keys] for a in ADDITIONS)
            yield f"| {said} | {len(keys)} | {signed(some, none)} | {signed(both, some)} |"
        yield f"\n## What iterating brings\n\n`{LOOP}` minus `{ONCE}` with the same additions: points of F1, paired 95% intervals.\n"
        yield "| questions | n | " + " | ".join(SAID[a] for a in ADDITIONS) + " |\n|---|--:|" + "--:|" * len(ADDITIONS)
        for source in sorted({self.found[k, ONCE, "none"]["source"] for k in self.keys}):
            groups.append((f"source {source}", self.some(lambda row, source=source: row["source"] == source)))
        for said, least, most in (("at most one answer", 0, 1), ("two answers", 2, 2), ("three or more answers", 3, 99)):
            keys = self.some(lambda row, least=least, most=most: least <= row["in_one_passage"] <= most)
            groups.append((f"{said} in one passage", keys))
        for said, keys in groups:
            if keys:
                cells = (signed(self.values((LOOP, a), keys), self.values((ONCE, a), keys)) for a in ADDITIONS)
                yield f"| {said} | {len(keys)} | " + " | ".join(cells) + " |"

    def mean(self, added: str, key: str) -> float:
        return statistics.fmean(self.values((system, added), [key])[0] for system in SYSTEMS)

    def seconds(self) -> Iterator[str]:
        taken: dict[Cell, list[float]] = {}
        for (key, *cell), row in self.found.items():
            if key.startswith("seconds/"):
                taken.setdefault((cell[0], cell[1]), []).append(row["seconds"])
        if not taken:
            return
        yield f"\n## Seconds\n\nMedian of {min(map(len, taken.values()))} questions, in turn, nothing kept, no disambiguated questions.\n"
        yield "| system | " + " | ".join(SAID[a] for a in ADDITIONS) + " |\n|---|" + "--:|" * len(ADDITIONS)
        for system in SYSTEMS:
            yield f"| `{system}` | " + " | ".join(f"{statistics.median(taken[system, a]):.2f}" for a in ADDITIONS) + " |"
        yield f"| `ambiscope`, the default | | | {statistics.median(taken['ambiscope', 'all']):.2f} |"


def page(rows: Rows, command: str) -> str:
    """The page, as Markdown.  Raises InputError where no question was answered by every system."""
    table = Table(rows)
    if not table.keys:
        raise InputError("no question was answered by every system yet; start again without --only-page to go on")
    verifiers = sorted({str(row["verifier"]) for row in rows.found.values() if row.get("verifier")})
    commits = sorted({str(row.get("commit", ""))[:7] for row in rows.found.values() if row.get("commit")})
    said = (
        f"`{command}` ({', '.join(commits)}; seed 0): six systems, each with nothing added, with a reranker of its own, and with a reranker that asks "
        f"the verifier. F1 answer, all [95% interval] / questions with several answers; {len(table.keys)} questions that every system has answered. "
        f"Verifier {', '.join(verifiers)}; the rerankers are those of the checkpoints, and each row of the run names its own. `ambiscope` is the default "
        "as it is shipped: the loop with all of them, a prior of retrieval and second readings."
    )
    head = (
        f"# What iterating brings, what the reranker, what the verifier\n\n{textwrap.fill(said, 120, break_on_hyphens=False)}\n"
    )
    return head + "\n".join(table.lines()) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--multi", type=Path, help="questions that bring their passages: JSONL(.gz)")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="ask only these now")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="every N-th question of data/starter, data/starter_test and --multi"
    )
    parser.add_argument("--practice", type=int, default=150, metavar="N", help="practice questions (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=int, default=0, metavar="N", help="measure seconds on so many questions of data/starter"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the practice questions drawn (default: %(default)s)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument(
        "--only-page", type=Path, metavar="FILE", help="write the tables of the rows that are there, and ask nothing"
    )
    args = parser.parse_args(argv)
    settings = Settings.from_env()
    rows = Rows(settings.home / "factorial" / "rows.jsonl")
    asked = rows.file.with_name("command.txt")
    if args.only_page is None:
        words = sys.argv[1:] if argv is None else argv
        shown = [f"DATA/multi/{Path(w).name}" if args.multi and w == str(args.multi) else w for w in words]
        disk.write_text(asked, " ".join(["python -m benchmarks.quality.factorial", *shown]))
        engine = Engine(settings)
        systems = Systems(engine)
        written = {name: written_by_us(engine, name, args.every) for name in ("test", "starter") if name in args.sets}
        sets = list(written.values())
        if "practice" in args.sets:
            sets.append(practice(engine, args.practice, args.seed))
        if args.multi and "multi" in args.sets:
            sets.append(from_file("multi", args.multi, "", args.every))
        for asked_of in sets:
            random.Random(args.seed).shuffle(asked_of)  # sources follow one another in a file
        longest = max(map(len, sets), default=0)
        run(systems, [s[i] for i in range(longest) for s in sets if i < len(s)], rows, settings.device)
        if args.seconds:
            starter = written.get("starter") or written_by_us(engine, "starter", args.every)
            measure(systems, starter[: args.seconds + 1], rows)
    if where := args.only_page or args.page:
        try:
            disk.write_text(where, page(rows, asked.read_text(encoding="utf-8") if asked.exists() else ""))
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
