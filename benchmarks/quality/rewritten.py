"""Rewritten questions judged by hand: how many are right and natural, how many right answers have one; and the fit of their score.

    python -m benchmarks.quality.rewritten report
    python -m benchmarks.quality.rewritten fit

`rewritten_test.tsv` beside this file: answers of `ambiscope` to ambiguous questions of which it found two or more, whether each is right, its rewritten
question and label, whether the app confirms it, and the judgment: "right" if by the evidence it has this answer and no other one, and a person could
have written it; "before": the same of the templates of de7e07a.  "seen" rows were looked at while the rules were made, "fresh" ones were not.
`rewritten_drawn.tsv`: the reference answers of practice questions that are held out and were not looked at before, in four draws, in the same columns; "before" is 6c36da8.
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

from benchmarks.quality import read_tsv
from core.disambiguation.edits import WORKS, Edit, propose_edits
from core.disambiguation.evidence import AnswerPlace
from core.disambiguation.scoring import signals
from core.settings import ROOT
from core.text import content_words, find_spans
from core.types import Passage

FOLDER = Path(__file__).parent
PRACTICE = ("practice", "practice_facts", "practice_documents")
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)


def report(rows: Sequence[dict[str, str]]) -> list[str]:
    """Lines for all rows and for each source: right and natural of the questions shown, of those confirmed, and how many right answers have one."""

    def share(part: int, total: int) -> str:
        return f"{part} of {total}" + (f" ({100 * part / total:.0f}%)" if total else "")

    lines = []
    for source in ("all", *dict.fromkeys(r["set"] for r in rows), *dict.fromkeys(r["source"] for r in rows)):
        group = [r for r in rows if source in ("all", r["set"], r["source"])]
        answered = [r for r in group if r["answer is right"] == "yes"]
        lines.append(f"{source}: {len(group)} answers, {len(answered)} right")
        for period, column in (("before", "judgment before"), ("now", "judgment")):
            judged = [r for r in group if r[column]]
            right = sum(r[column] == "right" for r in judged)
            of_right = [r for r in answered if r[column]]
            lines.append(
                f"  {period}: right and natural {share(right, len(judged))}, of right answers {share(sum(r[column] == 'right' for r in of_right), len(of_right))}; "
                f"right answers with a question {share(len(of_right), len(answered))}"
            )
        confirmed = [r for r in group if r["confirmed"] == "yes"]
        labelled = sum(bool(r["judgment"] or r["label"]) for r in answered)
        lines.append(
            f"  confirmed: right and natural {share(sum(r['judgment'] == 'right' for r in confirmed), len(confirmed))}; "
            f"right answers with a question or a label {share(labelled, len(answered))}"
        )
    return lines


def draw_report(rows: Sequence[dict[str, str]]) -> list[str]:
    """Lines for the draws of practice questions with their reference answers: right and natural of the questions shown, and how many answers have one."""
    lines = []
    for draw in ("draw", *dict.fromkeys(r["set"] for r in rows)):
        group = [r for r in rows if r["set"].startswith(draw)]
        for period, column in (("before", "judgment before"), ("now", "judgment")):
            verdicts = [r[column] == "right" for r in group if r[column]]
            lines.append(f"{draw}, {period}: right and natural {sum(verdicts)} of {len(verdicts)}; {len(group)} answers")
    return lines


@dataclass(frozen=True)
class ProposedEdit:
    """An edit of a practice question; `reference`: the question that a person wrote for the answer."""

    question: str
    answer: str
    reference: str
    edit: Edit
    signals: Mapping[str, float]

    @property
    def has_written_words(self) -> bool:
        """Whether all words that the edit adds are in the question that was written; its "film" or "song" beside a year need not be."""
        added = set(content_words(self.edit.question)) - set(content_words(self.question))
        written_words = set(content_words(self.reference))
        return self.edit.kind == "half" or (bool(added & written_words) and added - WORKS <= written_words)


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
        answer_places = [(pair["question"], *place) for pair in annotation["qaPairs"] if (place := place_of(pair, passages))]
        for reference, answer, place in answer_places:
            others = [p for _, text, p in answer_places if text != answer]
            for edit in propose_edits(question["question"], answer, place, others):
                features = signals(question["question"], edit, place, others)
                yield ProposedEdit(question["question"], answer, reference, edit, features)


def place_of(pair: Mapping[str, Any], passages: Mapping[str, Passage]) -> tuple[str, AnswerPlace] | None:
    """(the answer as its passage has it, its place)."""
    question_words, best = set(content_words(pair["question"])), (-1, 0, "", None)
    for passage in (passages[i] for i in pair["passages"]):
        for alias in pair["answer"]:
            for begin, end in find_spans(passage.text, alias):
                shared = len(question_words & set(content_words(AnswerPlace(passage, begin).sentence)))
                if (shared, len(alias)) > best[:2]:
                    best = (shared, len(alias), passage.text[begin:end], AnswerPlace(passage, begin))
    return (best[2], best[3]) if best[3] else None


def fit(judged: Sequence[dict[str, str]]) -> list[str]:
    """The weights, and by cross-validation over questions what each threshold shows."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    edits = [e for folder in PRACTICE for e in proposed(folder, "train")]
    judgments = {(r["question"], r["answer"], r["rewritten question"]): r["judgment"] == "right" for r in judged}
    has_words = np.array([e.has_written_words for e in edits])
    verdicts = [judgments.get((e.question, e.answer, e.edit.question)) for e in edits]
    right = np.array([w if v is None else v for w, v in zip(has_words, verdicts)])
    names = list(edits[0].signals)
    features = np.array([[e.signals[n] for n in names] for e in edits])
    groups = [e.question for e in edits]
    model = LogisticRegression(max_iter=2000)
    chance = cross_val_predict(model, features, right, groups=groups, cv=GroupKFold(5), method="predict_proba")[:, 1]
    model.fit(features, right)
    weights = {"bias": model.intercept_[0]} | dict(zip(names, model.coef_[0]))
    lines = [f"{len(edits)} edits, {len(judgments)} judged", str({n: round(float(w), 2) for n, w in weights.items()})]
    by_answer: dict[tuple[str, str, str], list[int]] = {}
    for i, e in enumerate(edits):
        by_answer.setdefault((e.question, e.answer, e.reference), []).append(i)
    best = [max(indices, key=lambda i: chance[i]) for indices in by_answer.values()]
    for threshold in THRESHOLDS:
        above = [i for i in best if chance[i] >= threshold]
        other = [i for i in above if not has_words[i]]
        judged_right = [bool(v) for i in other if (v := verdicts[i]) is not None]
        share = (len(above) - len(other) + len(other) * sum(judged_right) / max(1, len(judged_right))) / len(above)
        lines.append(
            f"  {threshold}: {len(above)} of {len(best)} answers with an edit; {len(above) - len(other)} have the written words, of the rest "
            f"{sum(judged_right)} of {len(judged_right)} judged are right: {100 * share:.0f}%"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("report", "fit"))
    args = parser.parse_args(arguments)
    test, draws, edits = (read_tsv(FOLDER / f"rewritten_{name}.tsv") for name in ("test", "drawn", "fit"))
    print("\n".join(fit(edits) if args.what == "fit" else report(test) + draw_report(draws)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
