"""Chooses the thresholds of dpr-threshold, rectify and jpr on practice questions held out from training; never on a test set.

    python -m benchmarks.tuning.thresholds [--annotated FOLDER ...] [--limit 200] [--only SYSTEM ...] [--out FILE]

Passages are read once (readouts, verdicts), and every setting is tried on these readings.  The best has the highest sum of F1 over all
and over ambiguous questions.  The defaults in core/systems are what this printed for the bundled weights.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import types as t
from core.engine import Engine
from core.metrics.answers import f1
from core.models.answering import load_answering
from core.models.ranking.evidence_verifier import AnswererEvidence, mixed, recall
from core.models.ranking.passage_scorers import ReaderScorer
from core.models.span.reader import Readout, load_reader
from core.retrieval.rerank import tree_decode
from core.settings import Settings, quiet_libraries
from core.systems.base.options import Scoring
from core.systems.base.selection import candidates_of, choose
from core.systems.options import RectifyOptions
from core.systems.rectify import MAX_VERIFIED
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import PRACTICE_FOLDERS, held_out_passages

POOL = 30
THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MAX_ANSWERS = 8
Setting = dict[str, Any]


@dataclass
class Case:
    """A held-out question with its passages and their readouts."""

    example: MultiExample
    pool: list[t.RetrievedPassage]
    top_k: int
    readouts: list[Readout]

    @property
    def question(self) -> t.Question:
        return t.Question(self.example.question)

    @property
    def passages(self) -> list[t.RetrievedPassage]:
        return self.pool[: self.top_k]

    def select(self, candidates: Iterable[t.Candidate], threshold: float) -> list[str]:
        ranked = sorted(candidates, key=lambda c: -c.probability)
        return [c.text for c in choose(ranked, self.question, threshold, MAX_ANSWERS)]


SettingsTried = Iterable[tuple[Setting, list[list[str]]]]  # each setting with the answers to each case


def dpr(cases: Sequence[Case], model: t.BatchAnsweringModel) -> SettingsTried:
    scorings: tuple[Scoring, Scoring] = ("passage", "dpr")
    for scoring, threshold in itertools.product(scorings, THRESHOLDS):
        answers = [c.select(candidates_of(c.readouts[: c.top_k], scoring), threshold) for c in cases]
        yield {"scoring": scoring, "threshold": threshold}, answers


def rectify(cases: Sequence[Case], model: t.BatchAnsweringModel) -> SettingsTried:
    """Settings with the reader alone (`mix` 1) and with the verifier."""
    options, verifier = RectifyOptions(), AnswererEvidence(model)
    recalled = [recall(c.passages, c.readouts[: c.top_k], options.surplus, options.evidence)[:MAX_VERIFIED] for c in cases]
    verdicts = [verifier.judge(c.example.question, spans) for c, spans in zip(cases, recalled)]
    for mix, threshold in itertools.product((0.0, 0.25, 0.5, 0.75, 0.9, 1.0), THRESHOLDS):
        answers = []
        for c, spans, supports in zip(cases, recalled, verdicts):
            candidates = [r.candidate for r in spans]
            candidates = [t.Candidate(r.text, mixed(s, r.probability, mix)) for r, s in zip(candidates, supports)]
            answers.append(c.select(candidates, threshold))
        yield {"mix": mix, "threshold": threshold}, answers


def jpr(cases: Sequence[Case], model: t.BatchAnsweringModel) -> SettingsTried:
    for diversity, beta in itertools.product((0.5, 0.9), (0.5, 1.0, 2.0)):
        decoded: list[list[Readout]] = []
        for c in cases:
            scorer = ReaderScorer(c.readouts, [p.similarity for p in c.pool], diversity)
            decoded.append([c.readouts[p.passage] for p in tree_decode(scorer, c.top_k, beta)])
        for threshold in THRESHOLDS:
            answers = [c.select(candidates_of(readouts, "dpr"), threshold) for c, readouts in zip(cases, decoded)]
            yield {"diversity": diversity, "length_penalty": beta, "threshold": threshold}, answers


TUNED = {"dpr-threshold": dpr, "rectify": rectify, "jpr": jpr}


def score(cases: Sequence[Case], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    values = [f1(c.example.gold, a) for a, c in zip(answers, cases)]
    multi = [v for v, c in zip(values, cases) if len(c.example.gold) > 1]
    return {
        "f1": round(sum(values) / len(values), 4),
        "f1_multi": round(sum(multi) / max(1, len(multi)), 4),
        "answers": round(sum(map(len, answers)) / len(answers), 2),
    }


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotated", type=Path, nargs="+", default=list(PRACTICE_FOLDERS), metavar="FOLDER")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--limit", type=int, default=0, help="at most so many questions, drawn evenly from the folders")
    parser.add_argument("--only", nargs="*", choices=list(TUNED), default=list(TUNED))
    parser.add_argument("--out", type=Path, help="the best settings as JSON")
    args = parser.parse_args()
    settings = Settings.from_env()
    held_out, pools = held_out_passages(Engine(settings), args.annotated, POOL, args.limit)
    reader, reader_digest = load_reader(settings.reader, settings.device)
    model, digest = load_answering(settings.answerer, settings.device)
    pool_size = POOL if "jpr" in args.only else args.top_k
    cases = [
        Case(example, pool[:pool_size], args.top_k, reader.read(example.question, [p.passage for p in pool[:pool_size]]))
        for example, pool in zip(held_out, pools)
    ]
    gold = sum(len(c.example.gold) for c in cases) / len(cases)
    out: dict[str, Any] = {"questions": len(cases), "gold": round(gold, 2), "reader": reader_digest, "answerer": digest}
    print(json.dumps(out), flush=True)
    for name in args.only:
        rows = [setting | score(cases, answers) for setting, answers in TUNED[name](cases, model)]
        rows.sort(key=lambda r: -(r["f1"] + r["f1_multi"]))
        for row in rows[:5]:
            print(f"{name:14} {json.dumps(row)}", flush=True)
        out[name] = rows[0]
        for option in ("scoring", "mix"):
            for value in dict.fromkeys(r[option] for r in rows if option in r):
                out[f"{name} {value}"] = next(r for r in rows if r[option] == value)
                print(f"best of {option} {value}: {json.dumps(out[f'{name} {value}'])}", flush=True)
    if args.out:
        args.out.write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
