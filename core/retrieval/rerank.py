"""Joint passage ranking by tree decoding: passages are picked one after another, each given those before it.

Source: Min et al. 2021, "Joint Passage Ranking for Diverse Multi-Answer Retrieval", sections 3.1 and 3.3 (TREEDECODE), with the length penalty of
Wu et al. 2016 (GNMT, section 7).  A node of the tree is a passage, a path from the root a sequence of picks; at each turn the best pair of a node
and a passage that may follow it is added, so the tree grows in width where passages are good on their own and in depth where they
complement others.  The result is the tree's passages in the order in which they were first picked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NODES_PER_PASSAGE = 3


class Scorer(Protocol):
    """An autoregressive reranker over passages 0..n-1."""

    def log_probabilities(self, paths: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """log P(next passage | question, path) of every passage for each path; -inf for those that can't follow."""
        ...


@dataclass(frozen=True, slots=True)
class Pick:
    passage: int  # index
    path: tuple[int, ...]  # the picks before it on its branch
    score: float  # its path's log probability over the length penalty


def length_penalty(length: int, beta: float) -> float:
    """((5 + length) / 6) ** beta.  It divides a path's log probability, so a larger beta favours long paths.

    >>> length_penalty(1, 2.0)
    1.0
    """
    return float(((5 + length) / 6) ** beta)


def tree_decode(scorer: Scorer, k: int, beta: float = 1.0) -> list[Pick]:
    """min(k, n) distinct passages, in the order of picking; fewer if no passage can follow any path.

    For a passage on several branches, the first pick counts.  Ties go to the shorter path, then to the smaller index.  In a tree
    of more than NODES_PER_PASSAGE nodes per requested passage, each passage gets no further branches.
    """
    totals: dict[tuple[int, ...], float] = {(): 0.0}
    nexts: dict[tuple[int, ...], list[float]] = {(): list(scorer.log_probabilities([()])[0])}  # by path, in order of growth
    picks: list[Pick] = []
    picked_passages: set[int] = set()
    k = min(k, len(nexts[()]))
    while len(picked_passages) < k:
        best: tuple[float, int, int, tuple[int, ...]] | None = None
        for path, log_probabilities in nexts.items():
            penalty = length_penalty(len(path) + 1, beta)
            for j, log_p in enumerate(log_probabilities):
                if log_p == -math.inf or j in path or (j in picked_passages and len(nexts) > NODES_PER_PASSAGE * k):
                    continue
                entry = ((totals[path] + log_p) / penalty, -len(path), -j, path)
                if best is None or entry[:3] > best[:3]:
                    best = entry
        if best is None:
            break
        score, _, negative, path = best
        j = -negative
        longer = (*path, j)
        totals[longer] = totals[path] + nexts[path][j]
        nexts[path][j] = -math.inf  # this child exists now
        if j not in picked_passages:
            picked_passages.add(j)
            picks.append(Pick(j, path, score))
        nexts[longer] = list(scorer.log_probabilities([longer])[0])
    return picks
