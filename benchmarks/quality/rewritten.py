"""Rewritten questions judged by hand: how many are right and natural, how many right answers have one; and the fit of their score.

    python -m benchmarks.quality.rewritten report
    python -m benchmarks.quality.rewritten fit

`rewritten_test.tsv` beside this file: answers of `ambiscope` to ambiguous questions of which it found two or more, whether each is right, its rewritten
question and label, whether the app confirms it, and the judgment: "right" if by the evidence it has this answer and no other one, and a person could
have written it; "before": the same of the templates of de7e07a.  "seen" rows were looked at while the rules were made, "fresh" ones were not.
`rewritten_fit.tsv`: judged edits with the signals of core.disambiguation.scoring, on which `fit` chooses its weights.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
MODELS = ("verifier", "gain")  # signals of a model


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


def fit(rows: Sequence[dict[str, str]]) -> list[str]:
    """The weights with and without a verifier, and by cross-validation over questions the edits that each threshold shows."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    found = [json.loads(r["signals"]) for r in rows]
    names = list(dict.fromkeys(name for row in found for name in row))
    good = np.array([r["judgment"] == "right" for r in rows])
    questions = [r["question"] for r in rows]
    plain = [n for n in names if n not in MODELS]
    by_answer: dict[tuple[str, str], list[int]] = {}
    for i, r in enumerate(rows):
        by_answer.setdefault((r["question"], r["answer"]), []).append(i)

    def matrix(columns: Sequence[str]) -> Any:
        return np.array([[row.get(n, 0.0) for n in columns] for row in found])

    order = LogisticRegression(max_iter=2000).fit(matrix(plain), good).decision_function(matrix(plain))
    lines = []
    for title, columns in (("without a verifier", plain), ("with a verifier", names)):
        model, values = LogisticRegression(max_iter=2000), matrix(columns)
        chance = cross_val_predict(model, values, good, groups=questions, cv=GroupKFold(10), method="predict_proba")[:, 1]
        model.fit(values, good)
        weights = {"bias": model.intercept_[0]} | dict(zip(columns, model.coef_[0]))
        lines.append(f"{title}: { ({n: round(float(w), 2) for n, w in weights.items()}) }")
        for least in THRESHOLDS:
            tried = (sorted(places, key=lambda i: -order[i])[:3] for places in by_answer.values())
            shown = [i for places in tried if (i := next((i for i in places if chance[i] >= least), -1)) >= 0]
            lines.append(f"  {least}: {len(shown)} of {len(by_answer)} answers, right and natural {good[shown].mean():.3f}")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.quality.rewritten", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("report", "fit"))
    chosen = parser.parse_args(arguments)
    print("\n".join(report(read("rewritten_test.tsv")) if chosen.what == "report" else fit(read("rewritten_fit.tsv"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
