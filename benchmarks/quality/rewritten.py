"""Rewritten questions judged by hand: how many are right and natural, how many right answers have one; and the fit of their score.

    python -m benchmarks.quality.rewritten report
    python -m benchmarks.quality.rewritten fit

`rewritten_test.tsv` beside this file: answers of `ambiscope` to ambiguous questions of which it found two or more, whether each is right, its rewritten
question and label, whether the app confirms it, and the judgment: "right" if by the evidence it has this answer and no other one, and a person could
have written it; "before": the same of the templates of de7e07a.  "seen" rows were looked at while the rules were made, "fresh" ones were not.
`rewritten_drawn.tsv`: the reference answers of practice questions that are held out and were not looked at before, in four draws, the same way; "before" is 6c36da8.
`rewritten_fit.tsv`: judged edits of practice questions.  `fit` takes all edits that are proposed for the answers of the training questions of `PRACTICE`, in their
supporting passages.  An edit is right if its new words are in the question that was written for this answer, or if it was judged so.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.disambiguation.edits import WORKS, Edit, propose_edits
from core.disambiguation.evidence import AnswerPlace
from core.disambiguation.scoring import signals
from core.settings import ROOT
from core.text import content_words, find_spans
from core.types import Passage

FOLDER = Path(__file__).parent
PRACTICE = ("practice", "practice_facts", "practice_documents")
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)


def read(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def report(rows: Sequence[dict[str, str]]) -> list[str]:
    """Lines for all rows and for each source: right and natural of the questions shown, of those confirmed, and how many right answers have one."""

    def share(part: int, whole: int) -> str:
        return f"{part} of {whole}" + (f" ({100 * part / whole:.0f}%)" if whole else "")

    lines = []
    for source in ("all", *dict.fromkeys(r["set"] for r in rows), *dict.fromkeys(r["source"] for r in rows)):
        own = [r for r in rows if source in ("all", r["set"], r["source"])]
        answered = [r for r in own if r["answer is right"] == "yes"]
        lines.append(f"{source}: {len(own)} answers, {len(answered)} right")
        for when, column in (("before", "judgment before"), ("now", "judgment")):
            shown = [r for r in own if r[column]]
            good = sum(r[column] == "right" for r in shown)
            of_right = [r for r in answered if r[column]]
            lines.append(
                f"  {when}: right and natural {share(good, len(shown))}, of right answers {share(sum(r[column] == 'right' for r in of_right), len(of_right))}; "
                f"right answers with a question {share(len(of_right), len(answered))}"
            )
        confirmed = [r for r in own if r["confirmed"] == "yes"]
        labelled = sum(bool(r["judgment"] or r["label"]) for r in answered)
        lines.append(
            f"  confirmed: right and natural {share(sum(r['judgment'] == 'right' for r in confirmed), len(confirmed))}; "
            f"right answers with a question or a label {share(labelled, len(answered))}"
        )
    return lines


def drawn(rows: Sequence[dict[str, str]]) -> list[str]:
    """Lines for the draws of practice questions with their reference answers: right and natural of the questions shown, and how many answers have one."""
    lines = []
    for draw in ("draw", *dict.fromkeys(r["set"] for r in rows)):
        own = [r for r in rows if r["set"].startswith(draw)]
        for when, column in (("before", "judgment before"), ("now", "judgment")):
            shown = [r[column] == "right" for r in own if r[column]]
            lines.append(f"{draw}, {when}: right and natural {sum(shown)} of {len(shown)}; {len(own)} answers")
    return lines


@dataclass(frozen=True)
class ProposedEdit:
    """An edit of a practice question; `written`: the question that was written for the answer."""

    question: str
    answer: str
    written: str
    edit: Edit
    signals: Mapping[str, float]

    @property
    def has_written_words(self) -> bool:
        """Whether all words that the edit adds are in the question that was written; its "film" or "song" beside a year need not be."""
        added = set(content_words(self.edit.question)) - set(content_words(self.question))
        written = set(content_words(self.written))
        return self.edit.kind == "half" or (bool(added & written) and added - WORKS <= written)


def proposed(folder: str, split: str) -> Iterator[ProposedEdit]:
    """The edits for all answers to the ambiguous questions of a split, each answer in the supporting sentence that is most like its written question."""
    data = ROOT / "data" / folder
    with gzip.open(data / "passages.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        passages = {r["id"]: Passage(r["id"], r["title"], r["text"]) for r in rows}
    for question in json.loads(gzip.decompress((data / "questions.json.gz").read_bytes())):
        (annotation,) = question["annotations"]
        if question["split"] != split or annotation["type"] != "multipleQAs":
            continue
        found = [(pair["question"], *place) for pair in annotation["qaPairs"] if (place := place_of(pair, passages))]
        for written, answer, place in found:
            others = [p for _, text, p in found if text != answer]
            for edit in propose_edits(question["question"], answer, place, others):
                known = signals(question["question"], edit, place, others)
                yield ProposedEdit(question["question"], answer, written, edit, known)


def place_of(pair: Mapping[str, Any], passages: Mapping[str, Passage]) -> tuple[str, AnswerPlace] | None:
    """(the answer as its passage has it, its place)."""
    wanted, best = set(content_words(pair["question"])), (-1, 0, "", None)
    for passage in (passages[i] for i in pair["passages"]):
        for alias in pair["answer"]:
            for begin, end in find_spans(passage.text, alias):
                shared = len(wanted & set(content_words(AnswerPlace(passage, begin).sentence)))
                if (shared, len(alias)) > best[:2]:
                    best = (shared, len(alias), passage.text[begin:end], AnswerPlace(passage, begin))
    return (best[2], best[3]) if best[3] else None


def fit(judged: Sequence[dict[str, str]]) -> list[str]:
    """The weights, and by cross-validation over questions what each threshold shows."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    edits = [e for folder in PRACTICE for e in proposed(folder, "train")]
    known = {(r["question"], r["answer"], r["rewritten question"]): r["judgment"] == "right" for r in judged}
    written = np.array([e.has_written_words for e in edits])
    verdicts = [known.get((e.question, e.answer, e.edit.question)) for e in edits]
    right = np.array([w if v is None else v for w, v in zip(written, verdicts)])
    names = list(edits[0].signals)
    values = np.array([[e.signals[n] for n in names] for e in edits])
    groups = [e.question for e in edits]
    model = LogisticRegression(max_iter=2000)
    chance = cross_val_predict(model, values, right, groups=groups, cv=GroupKFold(5), method="predict_proba")[:, 1]
    model.fit(values, right)
    weights = {"bias": model.intercept_[0]} | dict(zip(names, model.coef_[0]))
    lines = [f"{len(edits)} edits, {len(known)} judged", str({n: round(float(w), 2) for n, w in weights.items()})]
    by_answer: dict[tuple[str, str, str], list[int]] = {}
    for i, e in enumerate(edits):
        by_answer.setdefault((e.question, e.answer, e.written), []).append(i)
    best = [max(places, key=lambda i: chance[i]) for places in by_answer.values()]
    for least in THRESHOLDS:
        shown = [i for i in best if chance[i] >= least]
        rest = [i for i in shown if not written[i]]
        seen = [bool(v) for i in rest if (v := verdicts[i]) is not None]
        share = (len(shown) - len(rest) + len(rest) * sum(seen) / max(1, len(seen))) / len(shown)
        lines.append(
            f"  {least}: {len(shown)} of {len(best)} answers with an edit; {len(shown) - len(rest)} have the written words, of the rest "
            f"{sum(seen)} of {len(seen)} judged are right: {100 * share:.0f}%"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.rewritten", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("report", "fit"))
    chosen = parser.parse_args(arguments)
    lines = (
        fit(read("rewritten_fit.tsv"))
        if chosen.what == "fit"
        else report(read("rewritten_test.tsv")) + drawn(read("rewritten_drawn.tsv"))
    )
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
