"""Competence by Dawid and Skene's method, compared with crowd-kit's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from crowdkit.aggregation import DawidSkene

from core.metrics.agreement.competence import dawid_skene

# of crowd-kit, with newer pandas
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RIGHT = {"Ada": 0.95, "Bob": 0.8, "Cleo": 0.6, "Dan": 0.35}


def votes(labels: tuple[str, ...], things: int, seed: int) -> list[tuple[str, str, str]]:
    """Each thing is labelled by a random half of the people or more; each is right as often as `RIGHT` says."""
    random = np.random.default_rng(seed)
    labelled = []
    for thing in range(things):
        label = str(random.choice(labels))
        for person in random.permutation(list(RIGHT))[: random.integers(2, 5)]:
            wrong = [other for other in labels if other != label]
            labelled.append((f"t{thing}", str(person), label if random.random() < RIGHT[person] else str(random.choice(wrong))))
    return labelled


@pytest.mark.parametrize("labels", [("no", "yes"), ("correct", "duplicate", "unsupported", "wrong")])
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_crowd_kit(labels: tuple[str, ...], seed: int) -> None:
    """After equally many steps: crowd-kit stops by a bound that is not monotone, so it is told never to stop.  It ends with the errors that
    follow from the last truth, ours with the truth that follows from the last errors."""
    labelled = votes(labels, 150, seed)
    theirs = DawidSkene(n_iter=30, tol=-np.inf).fit(pd.DataFrame(labelled, columns=["task", "worker", "label"]))
    ours, after = (dawid_skene(labelled, labels, smoothing=0, iterations=n, tolerance=-1) for n in (30, 31))
    for thing, row in theirs.probas_.iterrows():
        assert ours.truth[thing] == pytest.approx([row[label] for label in labels], abs=1e-6)
    assert after.priors == pytest.approx([theirs.priors_[label] for label in labels], abs=1e-6)
    for person in RIGHT:
        # crowd-kit: rows are labels given, columns true ones
        wanted = theirs.errors_.loc[person].reindex(index=list(labels), columns=list(labels)).fillna(0.0).to_numpy().T
        assert after.errors[person] == pytest.approx(wanted, abs=1e-6)


def test_few_votes_make_nobody_perfect_and_none_is_no_fault() -> None:
    assert dawid_skene([("t", "Ada", "yes"), ("t", "Bob", "yes")], ("no", "yes")).accuracy("Ada") < 0.9
    assert dawid_skene([], ("no", "yes")).errors == {}
