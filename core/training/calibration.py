"""Fits a system's calibrations (core.models.ranking.calibration) to its runs over held-out questions, which are recorded with uncalibrated probabilities.

Each step's candidates are labelled by the references: a candidate is right if it equals an alias of an answer that was not given yet.  Equal readings of one
answer count once, the likeliest one, as they do where a rule decides (core.systems.base.selection.distinct).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from core import types as t
from core.errors import AmbiscopeError, InputError
from core.evaluation.folder import trim
from core.metrics.answers import f1, is_match
from core.metrics.calibration import reliability
from core.models.ranking.calibration import Calibration, Platt, log_odds
from core.systems.base.selection import distinct
from core.trace import from_json, to_json

MAX_END_PROBABILITY = 0.85  # P([EOI]) at which a recorded run ends: no rule continues there
FOLDS = 5
_RIDGE = 1.0  # of LogisticRegression: the inverse strength of its penalty

ReferenceSet = tuple[tuple[str, ...], ...]
Labelled = list[tuple[dict[str, float], bool]]  # signals, and the label


@dataclass(frozen=True)
class RecordedStep:
    """One step: candidates, likeliest first, and P([EOI]), both uncalibrated; `chosen`: the answer it continued with."""

    candidates: tuple[tuple[str, float], ...]
    eoi: float
    chosen: str | None


@dataclass(frozen=True)
class RecordedRun:
    """A run that was continued beyond its normal end.  `references`: the answer set of each annotation.  `origin`: a digest of
    the question (with its own passages) and of the system (with its settings, weights and corpus)."""

    id: str
    question: str
    references: tuple[ReferenceSet, ...]
    turns: tuple[RecordedStep, ...]
    origin: str = ""


@dataclass(frozen=True)
class CalibrationQuestion:
    """A question whose run is to be recorded."""

    id: str
    question: t.Question
    references: tuple[ReferenceSet, ...]


def record_runs(
    system: t.AnsweringSystem, questions: Sequence[CalibrationQuestion], file: Path, log: Callable[[str], None] = print
) -> list[RecordedRun]:
    """Runs a system over questions and caches the runs in a file.  Failed questions are logged and left out.  A cached run of
    another origin is repeated: ids only count the drawn questions, and passages, corpus and weights may have changed.
    References are those of `questions`.

    A system that reads once gets one step with all distinct candidates.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    trim(file)
    runs = {run.id: run for run in read(file)}
    for number, question in enumerate(questions, 1):
        origin = hashlib.sha256(json.dumps(to_json([system.info, question.question]), default=str).encode()).hexdigest()[:16]
        if question.id in runs and runs[question.id].origin == origin:
            continue
        runs.pop(question.id, None)
        try:
            steps = [e for e in system.run(question.question) if isinstance(e, t.StepFinished)]
        except AmbiscopeError as error:
            log(f"{question.id}: {error}")
            continue
        recorded = [
            RecordedStep(
                tuple((c.text, c.probability) for c in e.step.candidates),
                e.step.eoi_probability,
                e.answer.text if e.answer else None,
            )
            for e in steps
        ]
        if steps and all(e.step.eoi_probability == 0 for e in steps):
            recorded = [RecordedStep(tuple((e.answer.text, e.answer.probability) for e in steps if e.answer), 0.0, None)]
        runs[question.id] = RecordedRun(question.id, question.question.text, question.references, tuple(recorded), origin)
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(runs[question.id])) + "\n")
        if number % 50 == 0:
            log(f"{number} of {len(questions)} questions")
    return [replace(runs[question.id], references=question.references) for question in questions if question.id in runs]


def read(file: Path) -> list[RecordedRun]:
    """The last run of each id in a file that `record_runs` wrote."""
    if not file.exists():
        return []
    runs = (from_json(RecordedRun, json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines())
    return list({run.id: run for run in runs}.values())


def labelled(run: RecordedRun, all_candidates: bool = True) -> tuple[Labelled, Labelled]:
    """(whether each candidate is right, whether each [EOI] has no answer remaining).

    Judged by the annotation that fits the whole run best.  Without `all_candidates`, only by the best candidate of each step, which is what a loop returns.
    """
    answers: Labelled = []
    ends: Labelled = []
    returned = [turn.chosen for turn in run.turns if turn.chosen]
    remaining = max(run.references, key=lambda gold: f1(gold, returned), default=())
    for number, turn in enumerate(run.turns):
        signals = {"end": log_odds(turn.eoi), "later": float(number > 0)}
        candidates = distinct([t.Candidate(*c) for c in turn.candidates])
        for c in candidates if all_candidates else candidates[:1]:
            is_right = any(is_match(names, c.text) for names in remaining)
            answers.append(({**signals, "odds": log_odds(c.probability)}, is_right))
        ends.append(({**signals, "odds": log_odds(turn.eoi)}, not remaining))
        remaining = tuple(names for names in remaining if turn.chosen is None or not is_match(names, turn.chosen))
    return answers, ends


def fit_platt(rows: Labelled, signals: Sequence[str]) -> Platt:
    """The logistic regression of the labels on the signals.  Raises InputError if all labels are equal."""
    from sklearn.linear_model import LogisticRegression

    right = np.array([is_so for _, is_so in rows])
    if len(set(right.tolist())) < 2:
        raise InputError("all candidates are right, or all wrong, so there is nothing to calibrate; give more questions")
    x = np.array([[values[name] for name in signals] for values, _ in rows])
    model = LogisticRegression(C=_RIDGE, max_iter=1000).fit(x, right)
    return Platt({name: float(w) for name, w in zip(signals, model.coef_[0])}, float(model.intercept_[0]))


def fit_calibration(runs: Iterable[RecordedRun], fitted_on: str = "", weights: str = "") -> Calibration:
    """The calibration of one system; its `end` is None for systems without [EOI].  Raises InputError."""
    answers: Labelled = []
    ends: Labelled = []
    for run in runs:
        run_answers, run_ends = labelled(run)
        answers += run_answers
        ends += run_ends
    loops = any(values["end"] > log_odds(0.0) for values, _ in answers)
    answer = fit_platt(answers, ("odds", "end", "later") if loops else ("odds",))
    no_answer_left = fit_platt(ends, ("odds", "later")) if loops else None
    return Calibration(answer, no_answer_left, fitted_on, weights)


def cross_fitted(runs: Sequence[RecordedRun]) -> list[Calibration]:
    """For each run, a calibration that was fitted without the run's fold.  Neighbouring runs are in the same fold.

    Raises InputError.
    """
    out: list[Calibration] = []
    for fold in np.array_split(range(len(runs)), FOLDS):
        out += [fit_calibration(run for i, run in enumerate(runs) if i not in fold)] * len(fold)
    return out


def reliable(runs: Sequence[RecordedRun], calibrations: Sequence[Calibration]) -> dict[str, dict[str, float | int | None]]:
    """The expected calibration error before and after, from 0 to 1, by kind: "answer" and "[EOI]".

    Answers are the candidates that a rule decides on (a loop's best one of each step).  `calibrations`: one per run, fitted without that run.
    """
    probabilities: dict[str, list[tuple[float, float, bool]]] = {"answer": [], "[EOI]": []}
    for run, calibration in zip(runs, calibrations, strict=True):
        answers, ends = labelled(run, all_candidates=calibration.end is None)
        probabilities["answer"] += [(_probability(s["odds"]), calibration.answer(s), so) for s, so in answers]
        if calibration.end is not None:
            probabilities["[EOI]"] += [(_probability(s["odds"]), calibration.end(s), so) for s, so in ends]
    return {
        name: {
            "n": len(values),
            "before": reliability([(p, so) for p, _, so in values]).error,
            "after": reliability([(p, so) for _, p, so in values]).error,
        }
        for name, values in probabilities.items()
        if values
    }


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
