"""The chips of "Which one do you mean?" judged by hand: how many name the difference correctly.

    python -m benchmarks.quality.chips

`chips.tsv` beside this file: the reference answers of a question, the label that each gets from the passage that supports it (no model is asked), and
whether it is what distinguishes this meaning: "right", or "wrong" (also where there is none, and the chip shows the answer).  The questions are the
examples of Explore, ten drawn from data/starter, ten from held-out practice questions, and ten written for this over the bundled corpora ("written":
these rows name the passage that supports the answer).  A label that differs now counts as changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.quality import read_tsv
from benchmarks.quality.conflicts import read_from
from core import types as t
from core.datasets import load
from core.disambiguation.labels import labels
from core.disk import plain_or_gz
from core.settings import ROOT
from core.training.data.examples import read_passages_tsv

LIST = Path(__file__).with_suffix(".tsv")
FOLDERS = {"example": "starter", "starter": "starter"}  # every other source is its folder
WRITTEN = "written"
GROUPS = {
    "examples and ten of the starter corpus": tuple(FOLDERS),
    "ten written questions": (WRITTEN,),
    "ten practice questions": ("practice_documents", "practice_facts"),
}


def chips(folder: str, questions: set[str]) -> Iterator[tuple[str, str, str]]:
    """(question, answer, label) of a folder's questions."""
    rows = read_passages_tsv(plain_or_gz(ROOT / "data" / folder / "passages.tsv"))
    for q in load(plain_or_gz(ROOT / "data" / folder / "questions.json")):
        if q.question in questions:
            supported = [(p, [t.Passage(i, *rows[i]) for i in p.passage_ids]) for a in q.annotations[:1] for p in a.pairs]
            answers = [a for pair, passages in supported if (a := read_from(pair.answers, passages))]
            passages = list({p.id: p for _, passages_of_pair in supported for p in passages_of_pair}.values())
            yield from ((q.question, a.text, label) for a, label in zip(answers, labels(q.question, answers, passages)))


def written_chips(rows: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, str]]:
    """(question, answer, label) of the questions whose passages are given as FOLDER/ID."""
    for question, group in groupby(rows, lambda r: r["question"]):
        answers, passages = [], []
        for row in group:
            folder, name = row["passage"].split("/", 1)
            passages.append(t.Passage(name, *read_passages_tsv(ROOT / "data" / folder / "passages.tsv")[name]))
            if answer := read_from([row["answer"]], passages[-1:]):
                answers.append(answer)
        yield from ((question, a.text, label) for a, label in zip(answers, labels(question, answers, passages)))


def main(argv: Sequence[str] | None = None) -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(argv)
    rows, labels_now = read_tsv(LIST), dict[tuple[str, str], str]()
    for source in dict.fromkeys(r["source"] for r in rows):
        group = [r for r in rows if r["source"] == source]
        folder, questions = FOLDERS.get(source, source), {r["question"] for r in group}
        rows_now = written_chips(group) if source == WRITTEN else chips(folder, questions)
        labels_now |= {(question, answer): label for question, answer, label in rows_now}
    for name, sources in GROUPS.items():
        group = [r for r in rows if r["source"] in sources]
        right = sum(r["judgment"] == "right" for r in group)
        changed = sum(labels_now.get((r["question"], r["answer"])) != r["label"] for r in group)
        share = f"{right} of {len(group)} chips name the difference ({100 * right / len(group):.0f}%)"
        print(f"{name}: {share}; {changed} labels changed since")
    return 0


if __name__ == "__main__":
    sys.exit(main())
