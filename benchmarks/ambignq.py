"""Every system that needs no language model, end to end over Wikipedia: the table that opens the README.

    python -m benchmarks.ambignq --data DATA [--questions webquestions] [--limit N] [--systems NAME ...] [--work FOLDER]

DATA holds `passages/wiki.tsv.gz` (66,725 passages, the corpus), `ambignq/dev_light.json` (1,001 questions) and `open/webquestions.jsonl` (the first 300 are
asked).  Weights may be reported on these questions only if `python -m benchmarks.overlap` finds none of them among their training questions.
A question is *answerable* if every answer of at least one annotation occurs in a passage of the corpus; figures are given over all questions and over
these.  Each run is a process of its own; one that was interrupted continues, and one that has its report is not repeated: name another --work after a change.
Prints a Markdown table with the official scores, 95% intervals, the paired difference in F1 from `dpr-threshold`, and the published figures, which come from
larger models over all of Wikipedia (21 million passages).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate, points
from benchmarks.shipped_runs import bundled
from core import disk, json_io
from core.datasets import load
from core.errors import InputError
from core.evaluation.published import published
from core.metrics.significance.bootstrap import compare, interval
from core.retrieval.library import CorpusLibrary
from core.settings import ROOT, Settings
from core.text import normalize_answer
from core.types import ReferenceQuestion

CORPUS = "wikipedia-66k"
BASELINE = "dpr-threshold"
QUESTIONS = {"ambignq": ("ambignq/dev_light.json", 0, "AmbigNQ"), "webquestions": ("open/webquestions.jsonl", 300, "WebQSP")}
METRICS = ("F1 answer", "F1 bleu4", "F1 edit-f1", "R@10", "MRecall@10")


def answerable(questions: Sequence[ReferenceQuestion], passages: Path, file: Path) -> set[str]:
    """The ids of the questions all of whose answers occur in the corpus, kept in `file`."""
    if file.exists():
        return set(json_io.read(file))
    corpus = CorpusLibrary(Settings.from_env()).open(CORPUS)
    text = "\n".join(f" {normalize_answer(p.text)} " for p in corpus.passages(0, len(corpus)))
    known: dict[str, bool] = {}

    def occurs(alias: str) -> bool:
        key = normalize_answer(alias)
        return known.setdefault(key, f" {key} " in text)

    ids = {q.id for q in questions if any(a.pairs and all(any(map(occurs, p.answers)) for p in a.pairs) for a in q.annotations)}
    disk.write_json(file, sorted(ids), "free some space")
    return ids


def table(reports: dict[str, dict[str, Any]], inside: set[str]) -> Iterator[str]:
    """The lines of the Markdown table, best system first."""
    yield "| system | F1 all | multi | answerable | against " + BASELINE + " | BLEU-4 | EDIT-F1 | R@10 | MRecall@10 | s |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"

    def values(name: str, ids: set[str] | None = None) -> dict[str, float | None]:
        rows = reports[name]["rows"]
        return {r["id"]: r["metrics"]["F1 answer"] for r in rows if r["error"] is None and (ids is None or r["id"] in ids)}

    base = values(BASELINE) if BASELINE in reports else {}
    for name in sorted(reports, key=lambda n: -(reports[n]["scores"]["F1 answer"]["all"] or 0)):
        report, own = reports[name], values(name)
        scores, intervals = report["scores"], report["intervals"]
        within = list(values(name, inside).values())
        defined = [v for v in within if v is not None]
        common = [i for i in own if i in base]
        found = compare([own[i] for i in common], [base[i] for i in common]) if common and name != BASELINE else None
        cells = [
            points(scores["F1 answer"]["all"], intervals["F1 answer"]["all"]),
            points(scores["F1 answer"]["multi"], intervals["F1 answer"]["multi"]),
            points(sum(defined) / len(defined), interval(within)) if defined else "undefined",
            points(found.difference, found.interval) if found else "",
            *(points(scores.get(m, {}).get("all")) for m in METRICS[1:]),
            f"{report['timings']['seconds_median'] or 0:.2f}",
        ]
        yield f"| `{name}` | {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", choices=list(QUESTIONS), default="ambignq")
    parser.add_argument("--limit", type=int, default=0, help="the first so many questions")
    parser.add_argument("--systems", nargs="+", metavar="NAME", default=bundled())
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "runs" / "ambignq")
    args = parser.parse_args(argv)
    name, most, published_data = QUESTIONS[args.questions]
    file, passages = args.data / name, args.data / "passages" / "wiki.tsv.gz"
    if missing := [str(path) for path in (file, passages) if not path.is_file()]:
        raise InputError(
            f"{', '.join(missing)}: there is no such file; --data names the folder of ambignq/, open/ and passages/"
        )
    library = CorpusLibrary(Settings.from_env())
    if CORPUS not in library.names():
        print(f"building the corpus {CORPUS}", file=sys.stderr, flush=True)
        library.create(CORPUS, [passages])
    limit = args.limit or most
    questions = load(file)[: limit or None]
    inside = answerable(questions, passages, args.work / f"answerable-{args.questions}-{limit or 'all'}.json")
    reports: dict[str, dict[str, Any]] = {}
    for system in args.systems:
        print(f"{system} over {len(questions)} questions", file=sys.stderr, flush=True)
        folder = args.work / f"{args.questions}-{limit or 'all'}" / system
        if (report := evaluate(system, file, folder, CORPUS, limit=limit)) is not None:
            reports[system] = report
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    print(f"{len(questions)} questions of {name}, {len(inside)} answerable; {commit.strip()}\n")
    print("\n".join(table(reports, inside)))
    for one in published():
        if one.data == published_data and one.where == "Table 2":
            rows = (
                f"{s} {points(one.value(s, 'F1 answer'))} / {points(one.value(s, 'F1 answer', 'multi'))}" for s in one.values
            )
            print(f"\n{one.label}, over all of Wikipedia and with larger models: {', '.join(rows)}.")
    return 0 if len(reports) == len(args.systems) else 1


if __name__ == "__main__":
    sys.exit(main())
