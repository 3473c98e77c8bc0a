"""A conditional logit over the candidates of a step, with [EOI] as the alternative, fitted near given parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import Weights


@dataclass(frozen=True)
class Labelled:
    """A recorded step: (candidates, features), which candidates are right, and whether [EOI] is."""

    values: NDArray[np.float64]
    right: NDArray[np.bool_]
    end: bool


@dataclass(frozen=True)
class Logit:
    """The conditional logit of recorded steps, with the features of each candidate standardised: `x` is (candidates, parameters), and the last
    parameter, the bias, is not in it."""

    x: NDArray[np.float64]
    step: NDArray[np.int64]  # of each candidate
    right: NDArray[np.bool_]
    ends: NDArray[np.bool_]  # of each step: [EOI] is right too

    @classmethod
    def of(cls, steps: Sequence[Labelled], weights: Weights) -> Logit:
        """`weights`: they name the features and standardise them; where they have `first`, so do the parameters."""
        rows = np.concatenate([s.values for s in steps]) if steps else np.zeros((0, len(FEATURES)))
        names = list(weights.weights)
        mean, scale = (np.array([part[n] for n in names]) for part in (weights.mean, weights.scale))
        x = (rows[:, [FEATURES.index(n) for n in names]] - mean) / scale
        if weights.first:
            x = np.concatenate([x, x * rows[:, FEATURES.index("first_step")][:, None]], axis=1)
        number = np.repeat(np.arange(len(steps)), [len(s.right) for s in steps])
        right = np.concatenate([s.right for s in steps]) if steps else np.zeros(0, dtype=bool)
        return cls(x, number, right, np.array([s.end for s in steps], dtype=bool))

    def loss(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """(the negative log likelihood of what is right, its gradient)."""
        n = len(self.ends)
        z = self.x @ parameters[:-1] + parameters[-1]
        top = np.zeros(n)  # [EOI] has the score 0
        np.maximum.at(top, self.step, z)
        mass = np.exp(z - top[self.step])
        total = np.bincount(self.step, mass, n) + np.exp(-top)
        good = np.bincount(self.step, mass * self.right, n) + np.exp(-top) * self.ends
        gradient = mass / total[self.step] - mass * self.right / good[self.step]
        return float((np.log(total) - np.log(good)).sum()), np.append(self.x.T @ gradient, gradient.sum())

    def fitted(
        self, ridge: NDArray[np.float64], centre: NDArray[np.float64] | None = None, most: int = 500
    ) -> NDArray[np.float64]:
        """The parameters of the least loss plus `ridge` times the squared distance from `centre`, zero where none is given."""
        from scipy.optimize import minimize

        start = np.zeros(self.x.shape[1] + 1) if centre is None else centre

        def penalised(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, slope = self.loss(parameters)
            away = parameters - start
            return value + float(ridge @ away**2), slope + 2 * ridge * away

        found: NDArray[np.float64] = minimize(penalised, start, jac=True, method="L-BFGS-B", options={"maxiter": most}).x
        return found


def parameters_of(weights: Weights) -> NDArray[np.float64]:
    """The parameters of a `Logit` that these weights are."""
    return np.array([*weights.weights.values(), *(weights.first[n] for n in weights.weights if weights.first), weights.bias])


def with_parameters(weights: Weights, parameters: NDArray[np.float64]) -> Weights:
    """The same features with other parameters."""
    always, first = parameters[: len(weights.weights)], parameters[len(weights.weights) : -1]
    named = [dict(zip(weights.weights, map(float, part))) for part in (always, first)]
    return replace(weights, weights=named[0], first=named[1], bias=float(parameters[-1]))
