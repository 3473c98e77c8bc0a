"""Disambiguated questions judged by hand: how many answers get one, and how many of these are right and natural; and the fit of their score.

    python -m benchmarks.quality.written report
    python -m benchmarks.quality.written draw --answers 200 --seed 1 --out DRAWN.tsv    # reference answers of held-out practice questions
    python -m benchmarks.quality.written own --answers 200 --seed 1 --out DRAWN.tsv     # the default system's answers over data/starter
    python -m benchmarks.quality.written fit                                           # the weights of core.disambiguation.scoring

`written.tsv` beside this file has the judged rows: what passed the round trip, with the features of its score.  A question is right if by the evidence it has
this answer and no other one, and natural if a person could have written it.  `report` counts what the present score shows of them.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from benchmarks.quality import read_tsv
from benchmarks.quality.conflicts import read_from
from core import types as t
from core.datasets import load
from core.disambiguation.drafts import WriteDrafts, excerpt_of
from core.disambiguation.round_trip import Read, ask_back
from core.disambiguation.scoring import MIN_PROBABILITY, Features
from core.engine import Engine
from core.models.language.writer import load_writer
from core.models.span.reader import load_reader
from core.settings import ROOT, Settings
from core.systems.base.clarifying import reading_with
from core.systems.base.options import Options
from core.systems.base.system import answer
from core.training.data.held_out_passages import PRACTICE_FOLDERS
from core.training.data.mixtures import annotated_examples

JUDGED = Path(__file__).with_suffix(".tsv")
COLUMNS = ("set", "source", "question", "answer", "evidence", "written question", "log probability", "own", "judgment")
THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85)


@dataclass(frozen=True)
class Case:
    """A question with its answers and their passages."""

    source: str
    question: str
    answers: Sequence[t.Answer]
    passages: Sequence[t.Passage]


def held_out_cases(folders: Sequence[Path], seed: int, count: int) -> list[Case]:
    """Ambiguous held-out questions of practice folders, drawn at random until they have `count` answers, each in a passage that supports it."""
    out = []
    for folder in folders:
        for e in annotated_examples(folder, held_out=0.2)[1]:
            passages = {i: t.Passage(i, *p) for i, p in zip(e.extra["supporting"], e.passages)}
            pairs = zip(e.gold, e.extra["supporting_of"])
            answers = [a for gold, ids in pairs if (a := read_from(gold, [passages[i] for i in ids])) is not None]
            if len(answers) > 1 and len(answers) == len(e.gold):
                out.append(Case(folder.name, e.question, answers, list(passages.values())))
    random.Random(seed).shuffle(out)
    totals = list(accumulate(len(case.answers) for case in out))
    return out[: bisect_left(totals, count) + 1]


def own_cases(settings: Settings, seed: int, count: int) -> Iterator[Case]:
    """The default system's answers to questions of data/starter, drawn at random; sets of one answer are left out."""
    system, remaining = Engine(settings).system("ambiscope", "starter", Options(clarify=False)), count
    questions = load(ROOT / "data" / "starter" / "questions.json")
    for reference in random.Random(seed).sample(questions, len(questions)):
        prediction = answer(system, t.Question(reference.question))
        if len(prediction.answers) > 1:
            yield Case("starter", reference.question, prediction.answers, [p.passage for p in prediction.passages])
            remaining -= len(prediction.answers)
        if remaining <= 0:
            return


def rows_of(cases: Iterable[Case], settings: Settings, name: str) -> Iterator[dict[str, str]]:
    """A row for each answer, with the draft that passed the round trip, if any."""
    write, read = models(settings)
    for case in cases:
        by_id = {p.id: p for p in case.passages}
        for a, drafts in zip(case.answers, ask_back(case.question, case.answers, case.passages, write, read), strict=True):
            place = excerpt_of(a, by_id)
            evidence = " ".join(f"{place.title}: {place.excerpt}".split())
            row = dict.fromkeys(COLUMNS, "") | dict(zip(COLUMNS, (name, case.source, case.question, a.text, evidence)))
            for d in (d for d in drafts if d.passed):
                row |= {"written question": d.draft.question}
                row |= {"log probability": f"{d.features.log_probability:.3f}", "own": f"{d.features.own:.3f}"}
            yield row


def models(settings: Settings) -> tuple[WriteDrafts, Read]:
    reader, _ = load_reader(settings.reader, settings.device)
    return load_writer(settings.writer, settings.device)[0].write, reading_with(reader)


def features_of(row: dict[str, str]) -> Features:
    return Features(float(row["log probability"]), float(row["own"]))


def report(rows: Sequence[dict[str, str]]) -> list[str]:
    """A line for each set: answers with a question, and right and natural ones of these."""

    def share(part: int, total: int) -> str:
        return f"{part} of {total}" + (f" ({100 * part / total:.0f}%)" if total else "")

    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        group = [r for r in rows if r["set"] == name]
        shown = [r for r in group if r["written question"] and features_of(r).probability >= MIN_PROBABILITY]
        right = sum(r["judgment"] == "right" for r in shown)
        lines.append(f"{name}: a question for {share(len(shown), len(group))}, right and natural {share(right, len(shown))}")
    return lines


def fit(rows: Sequence[dict[str, str]]) -> list[str]:
    """The weights, and by cross-validation over questions what each threshold shows of each set."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    judged = [r for r in rows if r["written question"]]
    values = [features_of(r).values for r in judged]
    features = np.array([list(v.values()) for v in values])
    right = np.array([r["judgment"] == "right" for r in judged])
    model, groups = LogisticRegression(), [r["question"] for r in judged]
    chance = cross_val_predict(model, features, right, groups=groups, cv=GroupKFold(10), method="predict_proba")[:, 1]
    model.fit(features, right)
    weights = {"bias": model.intercept_[0]} | dict(zip(values[0], model.coef_[0]))
    lines = [f"{len(judged)} judged drafts", str({n: round(float(w), 2) for n, w in weights.items()})]
    for threshold in THRESHOLDS:
        counts = []
        for name in dict.fromkeys(r["set"] for r in rows):
            shown = np.array([r["set"] == name for r in judged]) & (chance >= threshold)
            counts.append(f"{int(right[shown].sum())} of {int(shown.sum())} of {sum(r['set'] == name for r in rows)}")
        lines.append(f"  {threshold}: right, shown, answers: {'; '.join(counts)}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("report", "draw", "own", "fit"))
    parser.add_argument("--answers", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="draw 1", help="of the set, in the first column")
    parser.add_argument("--folders", nargs="+", type=Path, default=PRACTICE_FOLDERS)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    settings = Settings.from_env()
    if args.what == "report":
        print("\n".join(report(read_tsv(JUDGED))))
    elif args.what == "fit":
        print("\n".join(fit(read_tsv(JUDGED))))
    else:
        held_out = args.what == "draw"
        cases = (
            held_out_cases(args.folders, args.seed, args.answers) if held_out else own_cases(settings, args.seed, args.answers)
        )
        with args.out.open("w", encoding="utf-8", newline="") as file:
            rows = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
            rows.writeheader()
            rows.writerows(rows_of(cases, settings, args.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
