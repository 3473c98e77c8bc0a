"""Every system that needs no language model, end to end over Wikipedia: the table that opens the README.

    python -m benchmarks.ambignq --data DATA [--questions webquestions] [--limit N] [--systems NAME ...] [--no-clarify] [--work FOLDER] [--pack]

DATA holds `passages/wiki.tsv.gz` (66,725 rows, the corpus), `ambignq/dev_light.json` (1,001 questions) and `open/webquestions.jsonl` (the first 300 are
asked); a file of another size is refused.  Weights may be reported on these questions only if `benchmarks.overlap` finds nothing against them: the page
says so where it does.  A question is *answerable* if every answer of at least one annotation occurs in a passage of the corpus; figures are given over
all questions and over these.  Each run is a process of its own; one that was interrupted continues, and one that has its report is not repeated: name
another --work after a change.  --pack stores the figures in data/shipped, for the documents (benchmarks.tables): scores and the F1 of each question by
its id, and no text, since AmbigNQ has a licence of its own.  --no-clarify leaves out disambiguated questions, and with them BLEU-4 and EDIT-F1.  Prints Markdown: the official scores
with 95% intervals, the paired difference in F1 from `dpr-threshold`, and the published F1 beside them.  A failed question has F1 0.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.evaluating import evaluate, markdown_table, mean_points, points
from benchmarks.overlap import training_faults
from benchmarks.shipped_runs import MAX_BYTES, bundled, write
from core import disk, json_io
from core.datasets import load
from core.errors import AmbiscopeError, InputError
from core.evaluation.published import published
from core.metrics.significance.bootstrap import compare
from core.retrieval.library import Corpus, CorpusLibrary
from core.settings import ROOT, Settings
from core.systems import SYSTEMS, mechanism_only, remark
from core.text import normalize_answer
from core.types import ReferenceQuestion
from storage.shipped import traces
from storage.shipped.runs import ARCHIVE

PACKED = ARCHIVE.with_name("ambignq.jsonl.xz")
CORPUS, PASSAGES = "wikipedia-66k", 66_716  # of 66,725 rows: 17 have a NUL character and are refused, 8 are long and become two
BASELINE = "dpr-threshold"


@dataclass(frozen=True)
class QuestionSet:
    file: str  # below DATA
    total: int  # questions in the file
    limit: int  # questions asked by default; 0: all
    published: str  # data set of the published table
    difference: str  # what that table was measured on instead
    layout: str | None = None


QUESTIONS = {
    "ambignq": QuestionSet("ambignq/dev_light.json", 1001, 0, "AmbigNQ", "all 2,002 development questions"),
    "webquestions": QuestionSet(
        "open/webquestions.jsonl", 5810, 300, "WebQSP", "the questions of WebQSP's test set, not these", "web-questions"
    ),
}
METRICS = ("F1 bleu4", "F1 edit-f1", "R@10", "MRecall@10")
Report = dict[str, Any]


def answerable(questions: Sequence[ReferenceQuestion], corpus: Corpus, file: Path) -> set[str]:
    """The ids of the questions all of whose answers occur in the corpus, cached in `file`."""
    if file.exists():
        return set(json_io.read(file))
    text = "\n".join(f" {normalize_answer(p.text)} " for p in corpus.passages(0, len(corpus)))

    @cache
    def occurs(alias: str) -> bool:
        key = normalize_answer(alias)
        return bool(key) and f" {key} " in text

    ids = {q.id for q in questions if any(a.pairs and all(any(map(occurs, p.answers)) for p in a.pairs) for a in q.annotations)}
    disk.write_json(file, sorted(ids), "free some space")
    return ids


def f1(report: Report, ids: set[str] | None = None, multi: bool = False) -> dict[str, float]:
    """Question id -> F1 answer."""
    rows = [r for r in report["rows"] if (ids is None or r["id"] in ids) and (r["ambiguous"] or not multi)]
    return {r["id"]: (r.get("metrics") or {}).get("F1 answer") or 0.0 for r in rows}


def difference(scores: dict[str, float], base_scores: dict[str, float]) -> str:
    """Paired, over the questions of both, with its interval."""
    common = [i for i in scores if i in base_scores]
    if not common:
        return "undefined"
    comparison = compare([scores[i] for i in common], [base_scores[i] for i in common])
    return points(comparison.difference, comparison.interval)


def published_f1(data: str) -> dict[str, str]:
    """System -> `all / multi` of the published table of these data."""
    return {
        system: f"{points(source.value(row, 'F1 answer'))} / {points(source.value(row, 'F1 answer', 'multi'))}"
        for source in published()
        if source.data == data and source.where == "Table 2"
        for row, system in source.systems.items()
    }


def table(reports: dict[str, Report], answerable_ids: set[str], data: str) -> str:
    """The table in Markdown, best system first; below them those that are a mechanism only."""
    heads = (
        "system",
        "F1 all",
        "multi",
        "answerable",
        f"against {BASELINE}",
        "the same, answerable",
        "BLEU-4",
        "EDIT-F1",
        "R@10",
        "MRecall@10",
        "s",
        "published F1",
    )
    base, published_figures, rows = reports.get(BASELINE), published_f1(data), []
    means = {name: report["scores"]["F1 answer"]["all"] or 0.0 for name, report in reports.items()}
    for name in sorted(reports, key=lambda n: (bool(mechanism_only(n)), -means[n])):
        report = reports[name]
        note = ", ".join(n for n in (remark(name), report["failed"] and f"{report['failed']} failed") if n)
        groups = f1(report), f1(report, multi=True), f1(report, answerable_ids)
        rows.append(
            [
                f"`{name}`{f' ({note})' if note else ''}",
                *(mean_points(list(scores.values())) for scores in groups),
                *(
                    "" if base is None or name == BASELINE else difference(f1(report, ids), f1(base, ids))
                    for ids in (None, answerable_ids)
                ),
                *(points(report["scores"].get(m, {}).get("all")) for m in METRICS),
                f"{report['timings']['seconds_median'] or 0:.2f}",
                published_figures.get(name, ""),
            ]
        )
    return markdown_table(heads, rows)


def slim(report: Report, answerable_ids: Sequence[str]) -> Report:
    """What the documents show of a report, without any text of a question or an answer."""
    rows = [
        {"id": r["id"], "ambiguous": r["ambiguous"], "metrics": {"F1 answer": (r.get("metrics") or {}).get("F1 answer")}}
        for r in report["rows"]
    ]
    parts = {name: report[name] for name in ("scores", "intervals", "timings", "failed", "provenance")}
    return {**parts, "rows": rows, "answerable": list(answerable_ids)}


def packed(file: Path | None = None) -> list[Report]:
    """The stored reports, without texts; none where none were stored.  Raises FormatError, StorageError."""
    path = file or PACKED
    return list(traces.read(path)) if path.exists() else []


def notes(reports: dict[str, Report], file: str, data: Path, differ: str) -> Iterator[str]:
    """The notes below the table: the commits of the runs, how the published figures differ, and what the weights have seen."""
    provenances = [report["provenance"] for report in reports.values() if report["provenance"]["commit"]]
    commits = sorted({f"{p['commit'][:10]}{' with changes' if p['changed_since_commit'] else ''}" for p in provenances})
    yield f"Commit {', '.join(commits) or 'unknown'}" + (": these runs are not of one commit." if len(commits) > 1 else ".")
    yield (
        f"The published figures are of models of 220 million to 6 billion parameters over all of Wikipedia (21 million passages), on {differ}: "
        "for orientation, not for comparison."
    )
    folders = (data, ROOT / "data", ROOT / "var")
    configs = sorted((ROOT / "checkpoints").glob("*/config.json"))
    faults = [fault for config in configs for fault in training_faults(config.parent, folders)]
    if reported := [fault for fault in faults if f" of {file} " in fault or " questions of " not in fault]:
        names = ", ".join(dict.fromkeys(f"`{fault.partition(':')[0]}`" for fault in reported))
        yield f"**Systems that use {names} are not to be reported**: `benchmarks.overlap` finds {len(reported)} faults there, such as: {reported[0]}."


def checked(args: argparse.Namespace) -> tuple[Path, list[ReferenceQuestion], Corpus]:
    """The question file, its questions and the corpus.  Raises InputError for files that are missing or of another version."""
    question_set = QUESTIONS[args.questions]
    file, passages = args.data / question_set.file, args.data / "passages" / "wiki.tsv.gz"
    if missing := [str(path) for path in (file, passages) if not path.is_file()]:
        raise InputError(
            f"{', '.join(missing)}: there is no such file; --data names the folder of ambignq/, open/ and passages/"
        )
    questions = load(file, question_set.layout)
    if len(questions) != question_set.total:
        raise InputError(
            f"{file} has {len(questions):,} questions and not {question_set.total:,}: it is another version of the data"
        )
    library = CorpusLibrary(Settings.from_env())
    print(f"the corpus {CORPUS}: built where it is not there", file=sys.stderr, flush=True)
    library.create(CORPUS, [passages])
    corpus = library.open(CORPUS)
    if len(corpus) != PASSAGES:
        raise InputError(f"{passages} has {len(corpus):,} passages and not {PASSAGES:,}: it is another version of the data")
    return file, questions, corpus


def run(args: argparse.Namespace) -> int:
    """Raises AmbiscopeError."""
    question_set = QUESTIONS[args.questions]
    limit = args.limit or question_set.limit
    for system in args.systems:
        SYSTEMS[system]  # an unknown name fails before anything is built
    file, questions, corpus = checked(args)
    questions, part = questions[: limit or None], f"{args.questions}-{limit or 'all'}"
    answerable_ids = answerable(questions, corpus, args.work / f"answerable-{part}.json")
    reports: dict[str, Report] = {}
    for system in args.systems:
        print(f"{system} over {len(questions)} questions", file=sys.stderr, flush=True)
        folder = args.work / f"{part}{'' if args.clarify else '-plain'}" / system
        words = ["--layout", question_set.layout] if question_set.layout else []
        words += [] if args.clarify else ["--no-clarify"]
        if (report := evaluate(system, file, folder, CORPUS, words, limit)) is not None:
            reports[system] = report
    print(f"{len(questions)} questions of {question_set.file}, {len(answerable_ids)} answerable\n")
    print(f"{table(reports, answerable_ids, question_set.published)}\n")
    print("\n\n".join(notes(reports, question_set.file, args.data, question_set.difference)))
    if args.pack and args.questions == "ambignq":
        size = write((slim(report, sorted(answerable_ids)) for report in reports.values()), PACKED, MAX_BYTES)
        print(f"{len(reports)} reports, {size:,} bytes: {PACKED}", file=sys.stderr)
    if broken := [system for system in args.systems if system not in reports]:
        print(f"not evaluated: {', '.join(broken)}; the same command continues with these", file=sys.stderr)
    return 1 if broken else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated, 2 for data that are missing or of another version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--questions", choices=list(QUESTIONS), default="ambignq")
    parser.add_argument("--limit", type=int, default=0, help="the first so many questions")
    parser.add_argument("--systems", nargs="+", metavar="NAME", default=bundled())
    parser.add_argument("--no-clarify", dest="clarify", action="store_false")
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "runs" / "ambignq")
    parser.add_argument("--pack", action="store_true", help=f"store the figures in {PACKED.relative_to(ROOT)}")
    args = parser.parse_args(argv)
    try:
        return run(args)
    except AmbiscopeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
