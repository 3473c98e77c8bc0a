"""The writer beside copying: EDIT-F1 and BLEU-4 of disambiguated questions, AmbigNQ's development questions with their reference answers.

    python -m benchmarks.quality.clarified --data DATA [--limit N]

The first annotation with several answers of each question.  An answer's passage is the first of those found with the prompt question and its
names (BM25 over DATA/passages/wiki.tsv.gz) that contains it; the questions that people wrote are not searched with.  An answer without a
passage, or without a question of the writer that counts, has the prompt question.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.quality.conflicts import read_from
from benchmarks.quality.written import models
from core import types as t
from core.datasets import load
from core.disambiguation.round_trip import AskedDraft, ask_back, best_draft
from core.metrics.base import Example, mean
from core.metrics.questions import f1_bleu4, f1_edit
from core.metrics.significance.bootstrap import compare, interval
from core.settings import Settings, quiet_libraries
from core.training.data.mining import Miner
from core.training.data.mixtures import context_passages

NEIGHBOURS = 20  # passages among which one with the answer is searched
COPIED = "the prompt question"
METRICS = {"EDIT-F1": f1_edit, "BLEU-4": f1_bleu4}
Case = tuple[str, t.Annotation, list[t.Answer], list[t.Passage]]


def cases(questions: Sequence[t.ReferenceQuestion], index: Miner, limit: int | None) -> Iterator[Case]:
    """(prompt question, annotation, its answers in order, their passages) of the first questions with several answers."""
    sets = [(q.question, a) for q in questions if (a := next((a for a in q.annotations if a.type == "multiple"), None))][:limit]
    neighbours = iter(index.neighbours([" ".join((q, *p.answers)) for q, a in sets for p in a.pairs], NEIGHBOURS))
    for question, annotation in sets:
        answers, passages = [], dict[str, t.Passage]()
        for pair in annotation.pairs:
            candidates = (t.Passage(str(i), *index.passages[int(i)]) for i in next(neighbours))
            read = next(((a, p) for p in candidates if (a := read_from(pair.answers, [p]))), None)
            answers.append(read[0] if read else t.Answer(pair.answers[0], 1.0))
            passages |= {read[1].id: read[1]} if read else {}
        yield question, annotation, answers, list(passages.values())


def written(question: str, asked: Sequence[Sequence[AskedDraft]]) -> dict[str, list[str]]:
    """The question of each answer in each row of the table."""
    best = [best_draft(drafts) for drafts in asked]
    return {
        COPIED: [question] * len(asked),
        "the writer's likeliest": [drafts[0].draft.question if drafts else question for drafts in asked],
        "those that pass the round trip": [d.draft.question if d and d.passed else question for d in best],
        "those that are shown": [d.draft.question if d and d.is_shown else question for d in best],
    }


def main(argv: Sequence[str] | None = None) -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="questions with several answers, the first ones of the file")
    args = parser.parse_args(argv)
    index = Miner(context_passages(args.data / "passages" / "wiki.tsv.gz", ()))
    scores: dict[tuple[str, str], list[float | None]] = {}
    counts, with_passage, n = dict[str, int](), 0, 0
    write, read = models(Settings.from_env())
    for question, annotation, answers, passages in cases(load(args.data / "ambignq" / "dev_light.json"), index, args.limit):
        asked = ask_back(question, answers, passages, write, read)
        n, with_passage = n + len(answers), with_passage + sum(bool(a.evidence) for a in answers)
        for name, questions in written(question, asked).items():
            counts[name] = counts.get(name, 0) + sum(q != question for q in questions)
            example = Example(question, (annotation,), tuple(a.text for a in answers), tuple(questions))
            for metric, score in METRICS.items():
                scores.setdefault((name, metric), []).append(score(example))
    print(f"{len(scores[COPIED, 'BLEU-4'])} questions, {n} answers, {with_passage} with a passage")
    for name, count in counts.items():
        figures = []
        for metric in METRICS:
            values, ends = scores[name, metric], interval(scores[name, metric])
            change = compare(values, scores[COPIED, metric])
            bounds = f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""
            figures.append(f"{metric} {100 * (mean(values) or 0):.1f}{bounds}")
            if name != COPIED and change.interval:
                figures.append(
                    f"{100 * (change.difference or 0):+.1f} [{', '.join(f'{100 * x:.1f}' for x in change.interval)}]"
                )
        print(f"{name} ({count} answers with a question): {'; '.join(figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
