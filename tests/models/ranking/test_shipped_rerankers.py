"""The shipped weights of the rerankers score as they did."""

from __future__ import annotations

import numpy as np
import pytest

from core.models.loading.finding import BUNDLED
from core.models.ranking.features import FEATURES
from core.models.ranking.reranker import KINDS, Kind, read_weights

# by these weights when they were last fitted: figures of the benchmarks hold only as long as these do
RERANKED: dict[Kind, tuple[str, str]] = {
    "retrieved": ("-0x1.730bebb858ae0p+0", "0x1.78fe3aeb0a8b0p+0"),
    "own": ("0x1.f9b7ec8bd3286p+1", "-0x1.3f52f1c721d66p+2"),
    "retrieved_verified": ("0x1.c4372f63dbc32p-1", "0x1.55a7b529afa87p+1"),
    "own_verified": ("0x1.9f42ae89ee644p+2", "-0x1.6fd0737232266p+2"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_shipped_rerankers_score_as_before(kind: Kind) -> None:
    weights = read_weights(BUNDLED / "answerer", kind)
    rows = np.zeros((2, len(FEATURES)))
    for i, name in enumerate(sorted(weights.weights)):  # by name: a new feature that they do not know changes nothing
        rows[:, FEATURES.index(name)] = (-1 + i / 20, 1 - i / 40)
    found = weights.scores(rows)
    assert found.tolist() == pytest.approx([float.fromhex(v) for v in RERANKED[kind]], rel=1e-12)
