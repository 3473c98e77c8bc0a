"""Documents that disagree: how often that is recognised, and how often an ambiguous question is taken for it.  No model is asked: the reference answers are given.

    python -m benchmarks.quality.conflicts [--wikicontradict FILE] [--multi DATA/multi/dev.jsonl.gz]

Conflicts: practice answers that two passages support, one of which gets another answer of the same kind; WikiContradict's questions with both answers.
Ambiguous questions: those of the practice folders, and of ASQA with the reference answers that its passages have; "without titles" as if they were
pasted.  The rules of core.disambiguation.conflicts were chosen on the practice folders (and on QuoteSum's training questions); the rest is test only.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from core import types as t
from core.datasets import load
from core.disambiguation.conflicts import conflicts
from core.settings import ROOT
from core.text import find_spans, shares_words
from core.training.data.composed import answer_kind, replaced
from core.training.data.examples import read_passages_tsv

FOLDERS = ("practice", "practice_facts", "practice_documents", "practice_kinds")
Case = tuple[str, list[t.Answer], list[t.Passage]]


def read_from(aliases: Sequence[str], passages: Iterable[t.Passage]) -> t.Answer | None:
    """The answer with its first place in each passage; None if no passage has it."""
    mentions = [(p.id, spans[0], alias) for p in passages for alias in aliases if (spans := find_spans(p.text, alias))]
    evidence = {name: t.Evidence(name, *span, alias) for name, span, alias in reversed(mentions)}
    return t.Answer(mentions[0][2], 1.0, tuple(reversed(evidence.values()))) if mentions else None


def practice(folder: str) -> tuple[list[Case], list[Case]]:
    """Ambiguous questions with the answers that a passage has, and composed conflicts."""
    rows = read_passages_tsv(ROOT / "data" / folder / "passages.tsv.gz")
    by_id = {name: t.Passage(name, *row) for name, row in rows.items()}
    questions = load(ROOT / "data" / folder / "questions.json.gz")
    pairs = [(q, pair) for q in questions for a in q.annotations for pair in a.pairs]
    same_kind = defaultdict(list)
    for _, pair in pairs:
        if kind := answer_kind(pair.question, pair.answers[0]):
            same_kind[kind].append(pair.answers[0])
    rng, ambiguous, composed = random.Random(1), [], []
    for q in questions:
        if q.ambiguous:
            passages = [by_id[i] for a in q.annotations for pair in a.pairs for i in pair.passage_ids]
            answers = [read_from(pair.answers, [by_id[i] for i in pair.passage_ids]) for a in q.annotations for pair in a.pairs]
            ambiguous.append((q.question, [a for a in answers if a], passages))
    for q, pair in pairs:
        ids = list(dict.fromkeys(pair.passage_ids))[:2]
        kind = answer_kind(pair.question or q.question, pair.answers[0])
        if len(ids) < 2 or not kind:
            continue
        first, second = (by_id[i] for i in ids)
        others = rng.sample(same_kind[kind], min(12, len(same_kind[kind])))
        other = next((o for o in others if not shares_words(o, pair.answers) and replaced(second.text, pair.answers, o)), None)
        if other and (changed := replaced(second.text, pair.answers, other)):
            passages = [first, replace(second, text=changed)]
            answers = [read_from(pair.answers, passages[:1]), read_from([other], passages[1:])]
            composed.append((pair.question or q.question, [a for a in answers if a], passages))
    return ambiguous, composed


def untitled(cases: Iterable[Case]) -> Iterator[Case]:
    return ((question, answers, [replace(p, title="") for p in passages]) for question, answers, passages in cases)


def own_passages(file: Path, source: str) -> Iterator[Case]:
    """Questions of a file whose passages have two or more of their answers."""
    for q in load(file):
        if q.id.startswith(source) and q.passages:
            answers = [read_from(pair.answers, q.passages) for a in q.annotations for pair in a.pairs]
            if len(present := [a for a in answers if a]) > 1:
                yield q.question, present, list(q.passages)


def line(name: str, cases: Iterable[Case]) -> str:
    recognised = [bool(conflicts(*case)) for case in cases]
    return f"{name}: {sum(recognised)} of {len(recognised)} ({100 * sum(recognised) / max(1, len(recognised)):.1f}%)"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wikicontradict", type=Path, metavar="FILE")
    parser.add_argument("--multi", type=Path, metavar="FILE")
    args = parser.parse_args(argv)
    ambiguous, composed = ([case for part in parts for case in part] for parts in zip(*map(practice, FOLDERS)))
    for title, change in (("", iter), (", without titles", untitled)):
        print(line(f"composed conflicts recognised{title}", change(composed)))
        print(line(f"ambiguous practice questions taken for a conflict{title}", change(ambiguous)), flush=True)
    if args.wikicontradict:
        print(line("WikiContradict recognised, answers in their passages", own_passages(args.wikicontradict, "wikicontradict")))
    if args.multi:
        asqa = list(own_passages(args.multi, "asqa"))
        print(line("ASQA taken for a conflict", asqa), line("without titles", untitled(asqa)), sep="; ")
        print(line("RAMDocs recognised", ramdocs(args.multi)))
    return 0


def ramdocs(file: Path) -> Iterator[Case]:
    """Its questions with one right answer and a false one, each in a passage."""
    for q in load(file):
        wrong = [w for w in q.extra.get("wrong_answers", ()) if w]
        if q.id.startswith("ramdocs") and not q.ambiguous and wrong and q.passages:
            right = [read_from(pair.answers, q.passages) for a in q.annotations for pair in a.pairs]
            false = [read_from([w], q.passages) for w in dict.fromkeys(wrong)]
            if any(right) and any(false):
                yield q.question, [a for a in (*right, *false) if a], list(q.passages)


if __name__ == "__main__":
    sys.exit(main())
