"""The reranker of joint passage ranking: what it starts from, its targets, and that it learns what the reader alone can't tell."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from core.models.ranking.passage_network import JointConfig, JointNetwork
from core.models.ranking.passage_scorers import ReaderScorer, TrainedScorer
from core.models.span.reader import Readout
from core.training.data.chunks import batches
from core.training.options import TrainConfig
from core.training.passages import PassagePool, PassageSetTask, mrecall, picks
from core.training.trainer import fit
from core.types import Candidate, Passage

CONFIG = JointConfig("r", states=4, width=16, heads=2, dropout=0.0)


def pool(right: int, n: int = 4) -> PassagePool:
    """The reader likes passage 0; the states mark the two passages that answer, `right` and the one after it."""
    probabilities = [0.9, *[0.5] * (n - 1)]
    readouts = [Readout(Passage(str(j), "", "x"), (Candidate(f"name {j}", p),), 0.1) for j, p in enumerate(probabilities)]
    states = np.zeros((n, 4), np.float16)
    states[right, 0] = states[right + 1, 1] = 1
    holds = tuple(frozenset({0} if j == right else {1} if j == right + 1 else ()) for j in range(n))
    return PassagePool(states, ReaderScorer(readouts, [None] * n), holds, 2, np.ones(n))


def test_untrained_it_ranks_as_the_reader_does() -> None:
    one = pool(1)
    trained = TrainedScorer(JointNetwork(CONFIG).eval(), one.tensor, one.reader)
    for path in ((), (0,), (2, 1)):
        ours, theirs = trained.log_probabilities([path])[0], one.reader.log_probabilities([path])[0]
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert trained.log_probabilities([(0, 1, 2, 3)])[0] == [-math.inf] * 4


def test_everything_is_where_the_network_is() -> None:
    class Elsewhere(JointNetwork):
        """Its weights have no values: they are on a device of their own, as on a GPU."""

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            assert {tensor.device.type for tensor in inputs} == {"meta"}
            raise InterruptedError

    one = pool(1)
    with pytest.raises(InterruptedError):
        TrainedScorer(Elsewhere(CONFIG).to("meta"), one.tensor, one.reader).log_probabilities([(1,)])


def test_targets_are_the_passages_with_a_new_answer() -> None:
    one = pool(1)
    task = PassageSetTask([one], [])
    network = JointNetwork(CONFIG).eval()
    scores = one.reader.log_probabilities([(1,)])[0]
    loss = task.loss(network, [(one, [(1,)])], torch.device("cpu"))
    assert loss.item() == pytest.approx(-scores[2], abs=1e-5)  # passage 2 alone has what passage 1 lacks
    nothing_left = task.loss(network, [(one, [(1, 2)])], torch.device("cpu"))
    assert nothing_left.item() == 0.0
    prefixes = [p for _, batch in zip(range(20), batches(task, 0, 0)) for _, paths in batch[1] for p in paths]
    assert all(len(set(p)) == len(p) < 4 for p in prefixes)
    assert {len(p) for p in prefixes} >= {0, 1, 2}


def test_it_learns_what_the_states_tell(tmp_path: Path) -> None:
    pools = [pool(1), pool(2)]
    task, network = PassageSetTask(pools, pools), JointNetwork(CONFIG)
    before = [mrecall(p, picks(p.reader, 2), 2) for p in pools]
    config = TrainConfig(steps=60, head_lr=1e-2, warmup=2, evaluate_every=60, device="cpu", precision="fp32")
    fit(network, task, config, tmp_path, lambda n, folder, row: None, lambda text: None)
    network.eval()
    after = [mrecall(p, picks(TrainedScorer(network, p.tensor, p.reader), 2), 2) for p in pools]
    assert (before, after) == ([0.0, 0.0], [1.0, 1.0])


def test_nothing_to_choose_is_said() -> None:
    with pytest.raises(InputError, match="no training question"):
        PassageSetTask([PassagePool(np.zeros((1, 4), np.float16), pool(1).reader, (frozenset({0}),), 1, np.ones(1))], [])
