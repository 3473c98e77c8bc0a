"""Questions that the starter corpus does not cover: how many get an answer, before and after the check of core.systems.base.coverage.

    python -m benchmarks.quality.absent [--systems ambiscope dpr-threshold] [--development]

Every answer to them is wrong.  `absent.tsv` beside this file: the question, what makes it absent (a year, a number, a name, a title, or a far topic), a
title of the corpus that tempts, and whether the question was looked at while the check was written ("developed") or not ("fresh").
`--development`: also F1 on data/starter before and after.  Each question is answered once, without the check; the check is then applied to the events.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality import read_tsv
from core import types as t
from core.datasets import load
from core.engine import Engine
from core.metrics.base import Example
from core.metrics.score.scoring import table, values_of
from core.settings import ROOT, Settings, quiet_libraries
from core.systems.base.coverage import Coverage
from core.systems.base.system import answer, as_read
from core.trace import fold

QUESTIONS = Path(__file__).with_suffix(".tsv")
F1 = "F1 answer"


@dataclass(frozen=True)
class Absent:
    question: str
    kind: str
    near: str
    set: str


def checked(prediction: t.Prediction) -> t.Prediction:
    """A prediction that was made without the check, with the check applied to its events."""
    coverage = Coverage(as_read(prediction.question, prediction.passages), ())
    return fold(prediction.question, prediction.system, coverage.checked(event for event in prediction.events))


def absent_line(name: str, rows: Sequence[Absent], predictions: Sequence[t.Prediction]) -> str:
    """Questions with an answer, before and after, of each set and kind."""
    groups = {
        **{s: [r.set == s for r in rows] for s in ("developed", "fresh")},
        **{kind: [r.kind == kind for r in rows] for kind in dict.fromkeys(r.kind for r in rows)},
    }
    before = [bool(p.answers) for p in predictions]
    after = [bool(checked(p).answers) for p in predictions]

    def share(in_group: Sequence[bool]) -> str:
        pairs = [(b, a) for b, a, c in zip(before, after, in_group) if c]
        return f"{sum(b for b, _ in pairs)} -> {sum(a for _, a in pairs)} of {len(pairs)}"

    return f"{name}: " + "; ".join(f"{group} {share(in_group)}" for group, in_group in groups.items())


def development_line(name: str, questions: Sequence[t.ReferenceQuestion], predictions: Sequence[t.Prediction]) -> str:
    """F1, all / ambiguous questions, before and after."""
    means = []
    for variant in (predictions, [checked(p) for p in predictions]):
        examples = [Example(q.question, q.annotations, tuple(a.text for a in p.answers)) for q, p in zip(questions, variant)]
        scores = table([values_of(e, [F1]) for e in examples], [q.ambiguous for q in questions], [F1])[F1]
        means.append(" / ".join(f"{100 * (v or 0):.1f}" for v in scores.values()))
    return f"{name}: F1 on the development set {means[0]} -> {means[1]}, n {len(questions)}"


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", default=["ambiscope", "dpr-threshold"], metavar="NAME")
    parser.add_argument("--development", action="store_true")
    args = parser.parse_args(argv)
    engine, rows = Engine(Settings.from_env()), [Absent(**row) for row in read_tsv(QUESTIONS)]
    dev = load(ROOT / "data" / "starter" / "questions.json") if args.development else []
    for name in args.systems:
        system = engine.system(name, "starter", engine.options(clarify=False, check_coverage=False))
        print(absent_line(name, rows, [answer(system, t.Question(r.question)) for r in rows]), flush=True)
        if dev:
            print(development_line(name, dev, [answer(system, t.Question(q.question)) for q in dev]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
