"""What few judgments can fit: a reranker near the weights that it has, in seconds, without a gradient through an encoder.

Between no change and weights of its own (core.training.reranker) lies a fit that is pulled towards the present weights: the most probable ones
under a normal distribution around them (Chelba and Acero 2004, "Adaptation of maximum entropy capitalizer: little data can help a lot").  How strong the
pull is, is chosen by cross-validation over the judged questions, and so is how willingly a run goes on (the bias against [EOI]).  What does not help on
judged questions that were held out is not kept.  Calibrated probabilities are fitted further by the same rule, with the new rerankers or with the old.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import CheckpointError, InputError
from core.models.ranking.calibration import LEAST as LEAST_SAID
from core.models.ranking.calibration import Calibration
from core.models.ranking.reranker import Weights, rerank
from core.text import normalize_answer
from core.training.calibration import ENOUGH, RecordedRun, RecordedStep, fit_calibration, labelled
from core.training.logit import Logit, parameters_of, with_parameters
from core.training.reranker import MAX_ANSWERS, LoopRuns, Runs, ridge_of

PULLS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)  # times the ridge of a fit from nothing
PULL_OF_BIAS = 0.1  # of a weight's
FOLDS = 5
ROUNDS = 100  # of L-BFGS at most: it begins near the end
LEAST = 10  # judged questions
SHIFTS = tuple(np.arange(-0.8, 0.81, 0.4))  # of the bias: a likelihood is not F1
COST = 0.005  # in F1, of a shift by 1: a few questions tell biases apart by chance


@dataclass(frozen=True)
class NearFit:
    """`before` and `after`: F1 of judged questions, those of each part with weights fitted on the other parts; `kept`: whether that is more, so that
    the weights are the fitted ones.  `pull`: towards the present weights, times the ridge; infinite where only the bias was fitted."""

    weights: Weights
    questions: int
    pull: float
    before: float
    after: float

    @property
    def kept(self) -> bool:
        return self.after > self.before

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, without the weights; `pull` is None where it is infinite."""
        said = {name: value for name, value in asdict(self).items() if name != "weights"} | {"kept": self.kept}
        return said | {"pull": None if math.isinf(self.pull) else self.pull}


def near(logit: Logit, present: Weights, pull: float) -> NDArray[np.float64]:
    """The parameters fitted on recorded steps, pulled towards the present ones."""
    ridge = ridge_of(present) * pull
    ridge[-1] = PULL_OF_BIAS * pull
    return logit.fitted(ridge, parameters_of(present), most=ROUNDS)


def _fitted(runs: Runs, ids: Sequence[int], present: Weights) -> tuple[Weights, float]:
    """(weights, pull): the pull under which parts of the questions that were held out are the most probable; infinite: the present weights."""
    losses = dict.fromkeys((math.inf, *PULLS), 0.0)
    for part in np.array_split(np.array(ids), min(FOLDS, len(ids))):
        held, rest = (Logit.of(runs.steps(own), present) for own in (part.tolist(), [i for i in ids if i not in part]))
        losses[math.inf] += held.loss(parameters_of(present))[0]
        for pull in PULLS:
            losses[pull] += held.loss(near(rest, present, pull))[0]
    pull = min(losses, key=lambda p: losses[p])
    if math.isinf(pull):
        return present, pull
    return with_parameters(present, near(Logit.of(runs.steps(ids), present), present, pull)), pull


def _f1(runs: Runs, ids: Sequence[int], weights: Weights) -> float:
    found = runs.f1(ids, weights)
    return sum(found.values()) / len(found)


def _willing(runs: Runs, ids: Sequence[int], weights: Weights) -> Weights:
    """The weights with the bias that is best for F1 on these questions, of a plateau its middle."""
    tried = [replace(weights, bias=weights.bias + shift) for shift in SHIFTS]
    scores = np.array([_f1(runs, ids, w) for w in tried]) - COST * np.abs(SHIFTS)
    smooth = np.convolve(np.pad(scores, 1, mode="edge"), np.ones(3) / 3, "valid")
    return tried[int(np.argmax(smooth))]


def fit_near(runs: Runs, present: Weights, fitted_on: str = "") -> NearFit:
    """The weights for judged questions, or the present ones where the fit does not help on parts of them that it did not see.

    Raises InputError for fewer than LEAST questions with an answer.
    """
    judged = range(len(runs.examples))
    answered = [i for i in judged if runs.examples[i].gold]
    others = [
        i for i in judged if not runs.examples[i].gold
    ]  # only what is wrong is known, or nothing is right: F1 says nothing there
    if len(answered) < LEAST:
        raise InputError(f"{len(answered)} judged questions have a correct answer; a fit needs {LEAST} at least")
    before = runs.f1([*answered, *others], present)  # and collects the steps

    def whole(ids: Sequence[int]) -> tuple[Weights, float]:
        weights, pull = _fitted(runs, [*ids, *others], present)
        return _willing(runs, ids, weights), pull

    after: dict[int, float] = {}
    for part in np.array_split(answered, FOLDS):
        after |= runs.f1(part.tolist(), whole([i for i in answered if i not in part])[0])
    weights, pull = whole(answered)
    old, new = (sum(found[i] for i in answered) / len(answered) for found in (before, after))
    found = NearFit(replace(weights, fitted_on=fitted_on) if new > old else present, len(answered), pull, old, new)
    runs.log(f"{found.to_json()}")
    return found


@dataclass(frozen=True)
class NearCalibration:
    """`before` and `after`: mean negative log likelihood of whether judged answers are right and nothing is left, of each part of the questions after the
    fit to the other parts; `kept`: whether that is less, so that the calibration is the fitted one."""

    calibration: Calibration
    before: float
    after: float

    @property
    def kept(self) -> bool:
        return self.after < self.before

    def to_json(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after, "kept": self.kept}


def calibrate_near(
    runs: Sequence[RecordedRun], present: Calibration, fitted_on: str = "", weights: str = ""
) -> NearCalibration:
    """The calibration for judged questions, pulled towards the present one, which stays where that does not help on parts of them that the fit did not
    see.  `weights`: digest of the weights that the runs are of."""
    stays = replace(present, weights=weights)
    before = after = 0.0
    n = 0
    try:
        for part in np.array_split(range(len(runs)), min(FOLDS, len(runs))):
            held = set(part.tolist())
            fitted = fit_calibration((run for i, run in enumerate(runs) if i not in held), near=present)
            for run in (runs[i] for i in held):
                n += sum(map(len, labelled(run)))
                before, after = before + _surprise(run, present), after + _surprise(run, fitted)
        whole = fit_calibration(runs, fitted_on, weights, present)
    except (InputError, CheckpointError):  # all of one kind, or of a reversed order: nothing can be fitted
        return NearCalibration(stays, 0.0, 0.0)
    found = NearCalibration(whole, before / max(n, 1), after / max(n, 1))
    return found if found.kept else replace(found, calibration=stays)


def _surprise(run: RecordedRun, calibration: Calibration) -> float:
    """Negative log likelihood of a run's labels."""
    answers, ends = labelled(run)
    said = [(calibration.answer(signals), so) for signals, so in answers]
    if calibration.end is not None:
        said += [(calibration.end(signals), so) for signals, so in ends]
    return -sum(math.log(max(LEAST_SAID, p if so else 1 - p)) for p, so in said)


def recorded(runs: LoopRuns, weights: Weights) -> list[RecordedRun]:
    """Runs of the judged questions with an answer, continued beyond their end, for a calibration of these weights."""
    found = []
    for i, example in enumerate(runs.examples):
        given: list[str] = []
        turns: list[RecordedStep] = []
        while example.gold and len(given) < MAX_ANSWERS and (not turns or turns[-1].chosen):
            proposal, values = runs.step(i, given)
            proposal = rerank(proposal, weights.scores(values))
            first = proposal.candidates[0] if proposal.candidates else None
            best = first.text if first else ""
            ends = not best or proposal.eoi_probability > ENOUGH or normalize_answer(best) in map(normalize_answer, given)
            said = tuple((c.text, c.probability) for c in proposal.candidates)
            turns.append(
                RecordedStep(said, proposal.eoi_probability, None if ends else best, first.verifier if first else None)
            )
            given.append(best)
        if turns:
            found.append(RecordedRun(str(i), example.question, example.source, (example.gold,), tuple(turns)))
    return found
