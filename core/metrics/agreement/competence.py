"""Estimates how well people label when the true labels are unknown, by the model of Dawid and Skene and expectation
maximisation.

Source: Dawid and Skene 1979, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm", Applied Statistics 28(1),
section 4.  Each person has a matrix of error rates; it and the true labels are estimated in turn, beginning with the share of votes of each
label.  Tests compare with crowd-kit.  `smoothing` is ours: that many imagined votes in each cell of a person's matrix keep few votes from
making somebody perfect.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.metrics.significance.bootstrap import Floats

SMOOTHING = 1.0
_SMALLEST = 1e-10


@dataclass(frozen=True, slots=True)
class Competence:
    """K labels.  `priors`: (K,), the frequency of each true label.  `errors`: person -> (K, K), row: true label, column: the
    label given; rows sum to 1.  `truth`: thing -> (K,), the probability of each label."""

    labels: tuple[str, ...]
    priors: Floats
    errors: Mapping[str, Floats]
    truth: Mapping[Hashable, Floats]

    def accuracy(self, person: str) -> float:
        """The probability that this person gives the true label."""
        return float(self.priors @ np.diag(self.errors[person]))


def dawid_skene(
    votes: Sequence[tuple[Hashable, str, str]],
    labels: Sequence[str] | None = None,
    *,
    smoothing: float = SMOOTHING,
    iterations: int = 1000,
    tolerance: float = 1e-8,
) -> Competence:
    """`votes`: (thing, person, label), one for each person and thing.  Stops when no probability of a true label changes by
    more than `tolerance`.

    >>> votes = [(n, person, "yes" if n % 2 else "no") for n in range(20) for person in ("Ada", "Bob")]
    >>> votes += [(n, "Cleo", "yes") for n in range(20)]
    >>> competence = dawid_skene(votes, smoothing=0)
    >>> round(competence.accuracy("Ada"), 3), round(competence.accuracy("Cleo"), 3)
    (1.0, 0.5)
    """
    labels = tuple(labels if labels is not None else sorted({label for *_, label in votes}))
    things = {name: index for index, name in enumerate(dict.fromkeys(vote[0] for vote in votes))}
    people = {name: index for index, name in enumerate(dict.fromkeys(vote[1] for vote in votes))}
    thing = np.array([things[vote[0]] for vote in votes], dtype=int)  # (V,)
    person = np.array([people[vote[1]] for vote in votes], dtype=int)
    choice = np.array([labels.index(vote[2]) for vote in votes], dtype=int)
    truth = np.zeros((len(things), len(labels)))
    np.add.at(truth, (thing, choice), 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    for _ in range(iterations):
        priors = truth.sum(axis=0) / max(1, len(things))
        counts = np.full((len(people), len(labels), len(labels)), float(smoothing))  # (person, label given, true label)
        np.add.at(counts, (person, choice), truth[thing])
        rates = np.maximum(counts, _SMALLEST)
        rates /= rates.sum(axis=1, keepdims=True)
        score = np.tile(np.log(np.maximum(priors, _SMALLEST)), (len(things), 1))
        np.add.at(score, thing, np.log(rates)[person, choice])
        before, truth = truth, np.exp(score - score.max(axis=1, keepdims=True))
        truth /= truth.sum(axis=1, keepdims=True)
        if not votes or np.abs(truth - before).max() <= tolerance:
            break
    return Competence(
        labels,
        priors,
        {name: rates[index].T for name, index in people.items()},
        {name: truth[index] for name, index in things.items()},
    )
