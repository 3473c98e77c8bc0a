"""Disambiguated questions with the right answers given: EDIT-F1, the round trip's share, and rows for a person to judge.

    python -m benchmarks.quality.clarifications [--folders data/starter ...] [--every N] [--rows ROWS.tsv]
    python -m benchmarks.quality.clarifications --judged FILE.tsv

Each answer stands where a supporting passage has it; the passages are the supporting ones and BM25 neighbours of the question.  Of a folder with held-out
questions those are taken, of another all.  `--rows` writes one row an answer (question, answer, disambiguated question, whether it passed, reference,
the evidence) with an empty column `judgment`: a person writes "right", or "wrong" and why.  Right is a question that has this answer and no other one, by
the evidence, in words that a person could have written.  `--judged` prints the shares of such a file.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from core.disambiguation.round_trip import ask_with, clarify
from core.metrics.questions import edit_f1, normal_question, variants
from core.models.answering import load_answering
from core.settings import Settings, quiet_libraries
from core.text import find_spans
from core.training.data.mixtures import annotated_examples
from core.types import Answer, Evidence, Passage

FOLDERS = ("data/practice", "data/practice_facts", "data/practice_documents", "data/practice_kinds")
COLUMNS = ("question", "answer", "disambiguated question", "passed", "reference", "evidence", "judgment")


def _answer(names: Sequence[str], own: Sequence[str], passages: Sequence[Passage]) -> Answer | None:
    """The answer where one of its own passages has it."""
    for p in passages:
        for name in names if p.id in own else ():
            for begin, end in find_spans(p.text, name):
                return Answer(p.text[begin:end], 1.0, (Evidence(p.id, begin, end, p.text[begin:end]),))
    return None


def measure(folder: Path, every: int, settings: Settings) -> tuple[list[float], list[dict[str, str]]]:
    """(EDIT-F1 of each answer, its rows).  Raises FormatError, CheckpointError."""
    examples, _ = annotated_examples(folder, 0.0)
    model, _ = load_answering(settings.answerer, settings.device)
    ask = ask_with(model)
    scores, rows = [], []
    for e in [e for e in examples if len(e.gold) > 1 and e.extra.get("split") != "train"][::every]:
        passages = [Passage(i, *p) for i, p in zip(e.extra["context"], e.passages)]
        found = [_answer(names, own, passages) for names, own in zip(e.gold, e.extra["supporting_of"])]
        references = [q for q, a in zip(e.extra["questions"], found) if a is not None]
        answers = [a for a in found if a is not None]
        if len({a.text for a in answers}) < max(2, len(answers)):
            continue
        prompt = normal_question(e.question)
        for answer, reference, made in zip(answers, references, clarify(e.question, answers, passages, ask)):
            scores.append(edit_f1(normal_question(made.question), variants(reference), prompt))
            text = next(p.text for p in passages if p.id == answer.evidence[0].passage_id)
            passed = "yes" if made.passed else made.why
            rows.append(dict(zip(COLUMNS, (e.question, answer.text, made.question, passed, reference, text, ""))))
    return scores, rows


def judged(path: Path) -> str:
    """The shares of a judged file, in a line: of the answers whose question was changed, of those that pass the round trip, and of all."""
    with path.open(encoding="utf-8", newline="") as f:
        rows = [r for r in csv.DictReader(f, delimiter="\t") if r["judgment"]]
    shown = [r for r in rows if r["disambiguated question"] != r["question"]]
    right = [r for r in shown if r["judgment"].startswith("right")]
    passed, good = (sum(r["passed"] == "yes" for r in some) for some in (shown, right))
    return (
        f"{path.name}: right and natural are {len(right)} of {len(shown)} changed questions ({len(right) / max(1, len(shown)):.0%}), "
        f"{good} of the {passed} that pass the round trip ({good / max(1, passed):.0%}), {len(right) / max(1, len(rows)):.0%} of all {len(rows)} answers"
    )


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=Path, nargs="+", default=[Path(f) for f in FOLDERS])
    parser.add_argument("--every", type=int, default=1, help="each N-th ambiguous question only")
    parser.add_argument("--rows", type=Path, help="where the rows to judge are written")
    parser.add_argument("--judged", type=Path, nargs="+", help="judged rows, whose shares are printed")
    args = parser.parse_args(argv)
    if args.judged:
        print("\n".join(judged(path) for path in args.judged))
        return 0
    settings, out = Settings.from_env(), []
    for folder in args.folders:
        scores, rows = measure(folder, args.every, settings)
        out += rows
        if rows:
            passed = sum(r["passed"] == "yes" for r in rows) / len(rows)
            print(
                f"{folder}: {len(rows)} answers, EDIT-F1 {100 * sum(scores) / len(rows):.1f}, passed {passed:.1%}", flush=True
            )
    if args.rows:
        with args.rows.open("w", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS, delimiter="\t")
            writer.writeheader()
            writer.writerows(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
