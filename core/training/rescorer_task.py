"""Fitting the rescorer (core.models.rescoring): runs of the answering model over annotated questions that it was not trained on.

The candidates of every step of those runs, labelled by the references, fit a logistic regression; its runs are then collected too (two rounds,
as in dataset aggregation, Ross et al. 2011), since other choices lead to other steps.  The figure is cross-validated by blocks of questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.models.rescoring import Weights, correct, rescore
from core.models.step_features import FEATURES, Embed, Read, Seen
from core.training.examples import MultiExample
from core.training.held_out import answer_f1
from core.types import BatchAnsweringModel, Proposal, RetrievedPassage

SHIFTS = tuple(np.arange(-1.2, 1.21, 0.2))  # added to the fitted bias: the logistic loss is not F1
FOLDS = 5
MAX_ANSWERS = 8
_STRENGTH = 0.3  # inverse of the ridge penalty


@dataclass
class Runs:
    """Runs over fixed questions; what the model proposed and the features of it are kept for each (question, previous answers)."""

    model: BatchAnsweringModel
    examples: Sequence[MultiExample]
    passages: Sequence[Sequence[RetrievedPassage]]
    embed: Embed
    read: Read
    log: Callable[[str], None] = print
    _seen: dict[int, Seen] = field(default_factory=dict)
    _kept: dict[tuple[int, tuple[str, ...]], tuple[Proposal, NDArray[np.float64]]] = field(default_factory=dict)

    def step(self, i: int, previous: Sequence[str]) -> tuple[Proposal, NDArray[np.float64]]:
        key = (i, tuple(previous))
        if key not in self._kept:
            question = self.examples[i].question
            (proposal,) = self.model.propose_many([(question, self.passages[i], list(previous))])
            if i not in self._seen:
                self._seen[i] = Seen(question, self.passages[i], self.embed, self.read)
            self._kept[key] = proposal, self._seen[i].step(previous, proposal)
            if len(self._kept) % 100 == 0:
                self.log(f"{len(self._kept)} steps read")
        return self._kept[key]

    def answers(self, i: int, weights: Weights | None) -> list[str]:
        """One greedy run; without weights, the model's own."""
        found: list[str] = []
        while len(found) < MAX_ANSWERS:
            proposal, values = self.step(i, found)
            if weights is not None:
                proposal = rescore(proposal, weights.scores(values))
            top = proposal.candidates[0] if proposal.candidates else None
            if top is None or top.probability <= proposal.eoi_probability:
                break
            found.append(top.text)
        return found

    def f1(self, ids: Sequence[int], weights: Weights | None) -> dict[int, float]:
        return {i: answer_f1(self.answers(i, weights), self.examples[i].gold) for i in ids}

    def rows(self, ids: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """(features, labels) of the candidates of every step that was ever taken for these questions."""
        x: list[NDArray[np.float64]] = []
        y: list[bool] = []
        wanted = set(ids)
        for (i, previous), (proposal, values) in sorted(self._kept.items(), key=lambda item: item[0]):
            if i in wanted:
                left = [g for g in self.examples[i].gold if not any(answer_f1([p], [g]) for p in previous)]
                x.append(values)
                y += [correct(c, left) for c in proposal.candidates]
        return np.concatenate(x), np.array(y)


def fit_weights(x: NDArray[np.float64], y: NDArray[np.bool_], fitted_on: str = "") -> Weights:
    """Raises InputError when all candidates are right, or all wrong."""
    from sklearn.linear_model import LogisticRegression

    if len(set(y.tolist())) < 2:
        raise InputError("the candidates are all right or all wrong, so there is nothing to fit; give more annotated questions")
    mean, scale = x.mean(0), x.std(0)
    scale[scale < 1e-6] = 1.0
    model = LogisticRegression(C=_STRENGTH, max_iter=1000).fit((x - mean) / scale, y)

    def named(values: NDArray[np.float64]) -> dict[str, float]:
        return {name: float(v) for name, v in zip(FEATURES, values)}

    return Weights(named(model.coef_[0]), named(mean), named(scale), float(model.intercept_[0]), fitted_on)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _figures(runs: Runs, scores: dict[int, float]) -> dict[str, float]:
    multi = [v for i, v in scores.items() if len(runs.examples[i].gold) > 1]
    return {"f1": round(_mean(list(scores.values())), 4), "f1_multi": round(_mean(multi), 4)}


def _shifted(runs: Runs, ids: Sequence[int], weights: Weights) -> Weights:
    """The bias that is best for F1, all and multi alike, on these questions."""
    tried = [replace(weights, bias=weights.bias + shift) for shift in SHIFTS]
    return max(tried, key=lambda w: sum(_figures(runs, runs.f1(ids, w)).values()))


def fit_rescorer(runs: Runs, rounds: int = 2, fitted_on: str = "") -> tuple[Weights, dict[str, dict[str, float]]]:
    """(weights fitted on all questions, figures: the model's own runs, and the cross-validated rescored ones).

    Raises InputError for fewer than 2 x FOLDS questions.
    """
    everything = list(range(len(runs.examples)))
    if len(everything) < 2 * FOLDS:
        raise InputError(f"{len(everything)} annotated questions are too few to fit a rescorer; give at least {2 * FOLDS}")
    figures = {"plain": _figures(runs, runs.f1(everything, None))}
    runs.log(f"plain: {figures['plain']}")
    for _ in range(rounds):
        weights = fit_weights(*runs.rows(everything), fitted_on)
        runs.f1(everything, weights)  # collects the steps that these weights lead to
    weights = _shifted(runs, everything, fit_weights(*runs.rows(everything), fitted_on))
    scores: dict[int, float] = {}
    for part in np.array_split(everything, FOLDS):  # blocks: neighbours share passages
        rest = [i for i in everything if i not in set(part.tolist())]
        own = _shifted(runs, rest, fit_weights(*runs.rows(rest)))
        scores |= runs.f1(part.tolist(), own)
    figures["cross_validated"] = _figures(runs, scores)
    runs.log(f"cross-validated: {figures['cross_validated']}")
    return weights, figures
