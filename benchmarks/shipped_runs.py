"""The runs that Evaluate opens on: every bundled system over question files that have their passages beside them, packed into data/shipped/.

    python -m benchmarks.shipped_runs data/starter/questions.json data/starter_test/questions.json [--work var/runs/shipped] [--systems NAME ...]
        [--again NAME ...] [--limit N] [--out FILE]

Each run is a process of its own (`python -m core evaluate --traces`), so that its peak memory is its own, with disambiguated questions and the
references as judge.  A run that was broken off goes on where it was; one that has its report is not run again: give another --work, or delete the folder,
after a change.  Where a change touches few systems, --again NAME ... runs only these and keeps the others' runs.  Systems that need a language model
are left out.  The file has at most 3 MB; a test says when the weights are others by now.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evaluating import evaluate
from core.engine import statuses
from core.retrieval.library import STARTER, CorpusLibrary
from core.settings import ROOT, Settings
from storage.shipped import runs


def bundled() -> list[str]:
    """The systems that can run with what is in the repository alone, whatever is set here."""
    return [s.name for s in statuses(Settings()) if s.ready]


def corpus_of(questions: Path, library: CorpusLibrary) -> str:
    """The corpus of the passages beside a question file, built if need be.  Raises InputError where one of this name has other passages."""
    name = questions.resolve().parent.name
    if name != STARTER:  # which is built when it is opened
        library.create(name, [questions.parent / "passages.tsv"])
    return name


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 when a system could not be evaluated: then nothing is packed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "questions", type=Path, nargs="+", help="question files below the repository, each beside its passages.tsv"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "var" / "runs" / "shipped", help="where the run folders lie")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--systems", nargs="+", metavar="NAME", default=None)
    which.add_argument(
        "--again", nargs="+", metavar="NAME", default=None, help="only these; the runs of the others stay as they are in FILE"
    )
    parser.add_argument("--limit", type=int, default=0, help="the first so many questions of each file (0: all)")
    parser.add_argument("--out", type=Path, default=runs.ARCHIVE)
    args = parser.parse_args(argv)
    systems, folders, broken = args.again or args.systems or bundled(), [], []
    for questions in args.questions:
        corpus = corpus_of(questions, CorpusLibrary(Settings.from_env()))
        for name in systems:
            folder = args.work / f"{name}-{corpus}"
            print(f"{name} over {corpus}", flush=True)
            report = evaluate(name, questions, folder, corpus, ["--traces"], args.limit)
            (broken if report is None else folders).append(folder)
    if broken:
        print(f"not evaluated, nothing was packed: {', '.join(f.name for f in broken)}", file=sys.stderr)
        return 1
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    kept = list(runs.packed(args.out, without=args.again)) if args.again else []
    systems = list(dict.fromkeys([*(r["report"]["provenance"]["system"]["name"] for r in kept), *systems]))
    about = runs.About(commit, runs.weights(), systems, args.limit, len(kept) + len(folders))
    size = runs.pack(folders, about, args.out, kept=kept)
    print(f"{about.runs} runs, {size:,} bytes: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
