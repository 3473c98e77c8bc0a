"""Chooses how the answerer decodes and when it is silent, on practice questions held out from training; never on a test set.

    python -m benchmarks.tuning.decoding [--answerer FOLDER] [--limit 60] [--manuals FILE] [--mechanism union --eoi-bias 0 --keep-above 0.1]

Four mechanisms over one network are compared: `loop`, AmbigPrompt alone; `one pass`, thresholded reading alone; `started`, the loop whose first
prompts are the answers of which one pass is sure; `union`, the loop in which [EOI] comes after whatever one pass keeps.  Each is tuned over its settings
for the mean of three figures: F1 over all questions, over those with several answers, and the share of questions without an answer that get none.  The
last are the same questions over what a search finds once their supporting passages are taken away (core.training.data.absent).
With --eoi-bias or --keep-above one value is tried instead of the grid, which takes a fraction of the time, and each setting's figures are printed:
how silence is bought with refused answers.

The network's scores are kept for each (question, previous answers), so that another setting costs little.  Questions and passages: those that
calibrations are fitted on (core.training.data.held_out_passages), and those of --manuals with the passages that they bring.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from core.engine import Engine
from core.metrics.answers import f1
from core.metrics.significance.bootstrap import compare, interval
from core.models.scheduling.device import bf16_autocast
from core.models.span.answerer import Decoding, Scored, SpanAnswerer, load_answerer
from core.models.span.reader import load_reader
from core.settings import Settings, quiet_libraries
from core.systems.base.selection import candidates_of, choose
from core.text import answer_key, mentions
from core.training.data.examples import MultiExample
from core.training.data.held_out_passages import PRACTICE_FOLDERS, held_out_passages, own_passages
from core.types import Candidate, Question, RetrievedPassage

BIASES = (-4.0, -2.0, -1.0, 0.0, 1.0)
FIRST_BIASES = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0)
KEEP_ABOVE = (0.03, 0.05, 0.1, 0.2)
SURE_ABOVE = (0.1, 0.3, 0.5, 0.7)
THRESHOLDS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3)
MECHANISMS = ("one pass", "loop", "union", "started")
MAX_ANSWERS = 8
POOL = 20  # passages searched, so that ten remain without the supporting ones


@dataclass(frozen=True)
class Case:
    """A question with its passages; without answers for one whose supporting passages were taken away."""

    question: str
    gold: tuple[tuple[str, ...], ...]
    passages: tuple[RetrievedPassage, ...]


Answers = Callable[[Case], list[str]]


class Runner:
    """Runs over cases, the network's scores and the reader's kept."""

    def __init__(self, answerer: SpanAnswerer) -> None:
        self.answerer = answerer
        self.scores: dict[tuple[int, tuple[str, ...]], Scored] = {}
        self.read: dict[int, list[Candidate]] = {}

    def loop(self, case: Case, decoding: Decoding, sure_above: float = 1.0) -> list[str]:
        """`sure_above`: what one pass gives this probability comes first."""
        previous = self.one_pass(case, sure_above) if sure_above < 1 else []
        while len(previous) < MAX_ANSWERS:
            key = (id(case), tuple(previous))
            if key not in self.scores:
                with bf16_autocast(torch.device("cpu")):
                    (self.scores[key],) = self.answerer.score_many([(case.question, case.passages, previous)])
            proposal = self.answerer.decide(self.scores[key], case.passages, previous, decoding)
            top = proposal.candidates[0] if proposal.candidates else None
            if top is None or proposal.eoi_probability >= top.probability:
                break
            if answer_key(top.text) in map(answer_key, previous):
                break
            previous.append(top.text)
        return previous

    def one_pass(self, case: Case, threshold: float) -> list[str]:
        """As `dpr-threshold` answers."""
        assert self.answerer.reader is not None
        if id(case) not in self.read:
            with bf16_autocast(torch.device("cpu")):
                readouts = self.answerer.reader.read(case.question, [p.passage for p in case.passages])
            self.read[id(case)] = sorted(candidates_of(readouts, "dpr"), key=lambda c: -c.probability)
        return [c.text for c in choose(self.read[id(case)], Question(case.question), threshold, MAX_ANSWERS)]


def settings_of(
    runner: Runner, biases: Sequence[float], keeps: Sequence[float]
) -> Iterator[tuple[str, dict[str, float], Answers]]:
    """(mechanism, setting, how it answers)."""
    for threshold in THRESHOLDS:
        yield "one pass", {"threshold": threshold}, partial(runner.one_pass, threshold=threshold)
    for bias, first in itertools.product(biases, FIRST_BIASES):
        setting = {"eoi_bias": bias, "first_eoi_bias": first}
        yield "loop", setting, partial(runner.loop, decoding=Decoding(bias, first, repeats=True))
        for keep in keeps:
            yield "union", {**setting, "keep_above": keep}, partial(runner.loop, decoding=Decoding(bias, first, keep))
        for sure in SURE_ABOVE:
            decoding = Decoding(bias, first)
            yield "started", {**setting, "sure_above": sure}, partial(runner.loop, decoding=decoding, sure_above=sure)


@dataclass(frozen=True)
class Result:
    """`f1`: of each question with an answer; `silent`: of each without one, whether it got none."""

    mechanism: str
    setting: dict[str, float]
    f1: list[float]
    multi: list[float]
    silent: list[bool]
    refused: float

    @property
    def figure(self) -> float:
        return (_mean(self.f1) + _mean(self.multi) + _mean(self.silent)) / 3

    def row(self) -> dict[str, Any]:
        figures = {"f1": self.f1, "f1_multi": self.multi, "silent": self.silent}
        return {
            "mechanism": self.mechanism,
            **self.setting,
            **{name: round(100 * _mean(values), 1) for name, values in figures.items()},
            "f1_interval": _percent(interval(self.f1)),
            "refused": round(100 * self.refused, 1),
        }


def _percent(values: Sequence[float | None] | None) -> list[float]:
    return [round(100 * v, 1) for v in values or () if v is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def result(mechanism: str, setting: dict[str, float], answers: Answers, cases: Sequence[Case]) -> Result:
    covered = [c for c in cases if c.gold]
    runs = [answers(c) for c in covered]
    values = [f1(c.gold, run) for c, run in zip(covered, runs)]
    multi = [v for v, c in zip(values, covered) if len(c.gold) > 1]
    silent = [not answers(c) for c in cases if not c.gold]
    return Result(mechanism, setting, values, multi, silent, _mean([not run for run in runs]))


def cases_of(examples: Sequence[MultiExample], passages: Sequence[Sequence[RetrievedPassage]], top_k: int) -> list[Case]:
    """Each question over its first passages and, where its supporting ones are known, over the first that are none of them and mention no answer."""
    cases = []
    for e, found in zip(examples, passages):
        cases.append(Case(e.question, e.gold, tuple(found[:top_k])))
        answers = [a for names in e.gold for a in names]
        supporting = {text for _, text in e.passages[: len(e.extra.get("supporting", ()))]}  # they come first
        others = [
            p
            for p in found
            if p.passage.text not in supporting and not mentions(f"{p.passage.title} {p.passage.text}", answers)
        ]
        if supporting and len(others) >= top_k // 2:
            cases.append(Case(e.question, (), tuple(others[:top_k])))
    return cases


def main() -> int:
    quiet_libraries()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answerer", default="default")
    parser.add_argument("--reader", default="default")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument(
        "--limit", type=int, default=0, help="at most so many questions, drawn evenly from the practice folders"
    )
    parser.add_argument(
        "--manuals", type=Path, nargs="*", default=[], metavar="FILE", help="questions that bring their passages"
    )
    parser.add_argument("--mechanism", nargs="+", default=MECHANISMS, choices=MECHANISMS)
    parser.add_argument("--eoi-bias", type=float, help="the only value of `eoi_bias` that is tried")
    parser.add_argument("--keep-above", type=float, help="the only value of `keep_above` that is tried")
    args = parser.parse_args()
    biases, keeps = (
        grid if value is None else (value,) for grid, value in ((BIASES, args.eoi_bias), (KEEP_ABOVE, args.keep_above))
    )
    settings = Settings.from_env()
    engine = Engine(settings)
    cases = cases_of(*held_out_passages(engine, PRACTICE_FOLDERS, POOL, args.limit), args.top_k)
    if args.manuals:
        cases += cases_of(*own_passages(engine, args.manuals, args.limit // len(PRACTICE_FOLDERS)), args.top_k)
    answerer, digest = load_answerer(args.answerer, settings.device, Decoding(keep_above=0.0))
    answerer.reader, _ = load_reader(args.reader, settings.device)
    print(
        f"{sum(bool(c.gold) for c in cases)} questions with an answer, {sum(not c.gold for c in cases)} without (weights {digest})"
    )
    best: dict[str, Result] = {}
    for mechanism, setting, answers in settings_of(Runner(answerer), biases, keeps):
        if mechanism not in args.mechanism:
            continue
        tried = result(mechanism, setting, answers, cases)
        if len(biases) == 1 or len(keeps) == 1:
            print(json.dumps(tried.row()), flush=True)
        if mechanism not in best or tried.figure > best[mechanism].figure:
            best[mechanism] = tried
    reference = next(iter(best.values()))  # one pass, unless it is not asked
    for each in best.values():
        difference = compare(each.f1, reference.f1)
        print(
            json.dumps(
                {**each.row(), "minus_first_row": _percent((difference.difference,)), "interval": _percent(difference.interval)}
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
