"""Training the reranker of joint passage ranking on pools of passages that the reader has read.

Source: Min et al. 2021 (JPR), section 3.2.  A passage is right after a prefix if it holds an answer that no picked
passage holds.  Each right passage is a target (the mean of their -log P).  Half of the prefixes contain only right
picks, in random order (an oracle's).  The others are drawn from the reader's own choices with Gumbel noise, so that the
decoder also learns to continue after a wrong pick.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from core.errors import InputError
from core.models.ranking.passage_network import JointNetwork
from core.models.ranking.passage_scorers import ReaderScorer, TrainedScorer
from core.retrieval.rerank import Scorer, tree_decode
from core.training.data.chunks import like_with_like, stream

CHUNK = 256
BATCH = 16  # questions of a step
PREFIXES = 4  # of a question in a step
K = 5  # passages picked for the held-out figure


@dataclass(frozen=True)
class Pool:
    """A question's pool as the reader read it: states (N, S) in half precision, the reader's scorer, and the indices of
    the answers that each passage holds.
    """

    states: np.ndarray
    reader: ReaderScorer
    holds: tuple[frozenset[int], ...]
    answers: int  # of the question; some may stand in no passage of the pool

    @property
    def tensor(self) -> Tensor:
        """The states (N, S) in single precision."""
        return torch.from_numpy(self.states).float()


def mrecall(pool: Pool, picked: Sequence[int], k: int = K) -> float:
    """MRecall@k of the first k picked passages, 0 or 1 (Min et al. 2021, section 2)."""
    found: set[int] = set().union(*(pool.holds[j] for j in picked[:k])) if picked else set()
    return float(len(found) >= min(k, pool.answers))


def picks(pool: Pool, scorer: Scorer, k: int = K, beta: float = 1.0) -> list[int]:
    """The indices of the passages that tree decoding picks, in order."""
    return [p.passage for p in tree_decode(scorer, k, beta)]


class JointTask:
    """A core.training.trainer.Task."""

    def __init__(self, pools: Sequence[Pool], held_out: Sequence[Pool], most: int = 9) -> None:
        """`most`: passages in a prefix.  Raises InputError if no pool has both right and wrong passages."""
        # where every passage answers, or none does, there is nothing to choose
        self.pools = [p for p in pools if any(p.holds) and not all(p.holds)]
        self.held_out, self.most = list(held_out), most
        if not self.pools:
            raise InputError("no training question has passages that answer it and passages that don't; check --annotated")

    def _prefix(self, pool: Pool, rng: random.Random) -> tuple[int, ...]:
        length = rng.randint(0, min(self.most, len(pool.holds) - 1))
        if rng.random() < 0.5:
            right: list[int] = []
            covered: set[int] = set()
            for j in rng.sample(range(len(pool.holds)), len(pool.holds)):
                if pool.holds[j] - covered:
                    right.append(j)
                    covered |= pool.holds[j]
            return tuple(right[: rng.randint(0, max(0, len(right) - 1))])
        out: tuple[int, ...] = ()
        for _ in range(length):
            scores = pool.reader.log_probabilities([out])[0]
            noisy = [s - np.log(-np.log(rng.random() or 1e-9)) if s > -np.inf else s for s in scores]
            out = (*out, int(np.argmax(noisy)))
        return out

    def batches(self, seed: int, start: int) -> Iterator[tuple[int, Any]]:
        def groups(chunk: int) -> list[list[Pool]]:
            return like_with_like(self.pools, CHUNK, seed, chunk, lambda p: len(p.holds), lambda group, _: len(group) < BATCH)

        for position, group in stream(groups, start):
            rng = random.Random(f"{seed}-{position}")
            yield position, [(pool, [self._prefix(pool, rng) for _ in range(PREFIXES)]) for pool in group]

    def loss(self, network: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """The mean of -log P of the right passages after each prefix."""
        losses = []
        for pool, prefixes in batch:
            states, unpicked = pool.tensor.to(device), torch.tensor(pool.reader.log_worth(()), device=device)
            for prefix in prefixes:
                covered = set().union(*(pool.holds[j] for j in prefix)) if prefix else set()
                targets = [j for j, holds in enumerate(pool.holds) if holds - covered and j not in prefix]
                if not targets:
                    continue
                picked = torch.tensor(prefix, dtype=torch.long, device=device)
                worth = torch.tensor(pool.reader.log_worth(prefix), device=device)
                logits = network(states, unpicked, worth, picked).index_fill(0, picked, float("-inf"))
                losses.append(-torch.log_softmax(logits, 0)[targets].mean())
        if not losses:  # every answer was picked: nothing to learn, and a gradient all the same
            return torch.stack([p.sum() for p in network.parameters()]).sum() * 0.0
        return torch.stack(losses).mean()

    @torch.inference_mode()
    def evaluate(self, network: nn.Module) -> dict[str, float]:
        """MRecall@K of the held-out pools by tree decoding, over all questions and over those with several answers."""
        if not self.held_out:
            return {}
        assert isinstance(network, JointNetwork)
        found = [(mrecall(p, picks(p, TrainedScorer(network, p.tensor, p.reader))), p.answers > 1) for p in self.held_out]
        several = [v for v, multi in found if multi]
        every, multi = sum(v for v, _ in found) / len(found), sum(several) / max(1, len(several))
        return {f"MRecall@{K}": every, f"MRecall@{K} multi": multi, "figure": every + multi}
