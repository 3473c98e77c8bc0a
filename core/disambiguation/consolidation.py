"""Consolidation of interpretations: embeddings -> clusters -> medoids, with 2-D coordinates for the map.

Source: Lee et al. 2025 (VerDICt), section 4.2 and Algorithm 1, lines 10-14: HDBSCAN (Campello et al. 2013; scikit-learn's) over f(question;
answer), one medoid per cluster.  Differences from the paper: it gives no parameters, so `CLUSTERING` is ours ("conservative" gives fewer clusters,
as in its Table 4); `same_answer` splits a cluster whose members give different answers and joins clusters that give the same one, because a reader's answers
are spans of their passages, which say more than the embedding; and unclustered interpretations may be kept (`unclustered`): in a
small corpus most meanings have a single passage.

Everything here is pure and deterministic.  Legend: n interpretations, d dimension of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.text import answer_key, overlapping
from core.types import Interpretation, InterpretationPlaced

MeaningVectors = NDArray[np.float32]
ClusterLabels = NDArray[np.int64]

Clustering = Literal["default", "conservative"]
EmbeddedText = Literal["question and answer", "question"]
Unclustered = Literal["verified", "keep", "drop"]
SameAnswer = Literal["decides", "ignored"]

NOISE = -1
EQUAL_WITHIN = 1e-4  # coordinates that differ by less are equal
ONE_MEANING = 0.2  # Euclidean distance of unit vectors (a cosine of 0.98): if all points are this close to one of them, they are one cluster


@dataclass(frozen=True)
class Density:
    """HDBSCAN's parameters.  `epsilon`: Euclidean distance of unit vectors (0.45 is a cosine of 0.9) below which clusters are not split."""

    min_cluster_size: int
    epsilon: float


CLUSTERING: dict[str, Density] = {"default": Density(2, 0.0), "conservative": Density(3, 0.45)}


@dataclass(frozen=True)
class Consolidation:
    """The method of consolidation."""

    clustering: Clustering = "default"
    embed: EmbeddedText = "question and answer"
    unclustered: Unclustered = "verified"  # verified: kept unless its verification failed
    same_answer: SameAnswer = "decides"


@dataclass(frozen=True)
class Consolidated:
    """`placed[i]` is interpretation i on the map.  `final`: the indexes of the final interpretations, larger clusters first.
    `dropped`: unclustered ones that were left out, each with the reason."""

    placed: tuple[InterpretationPlaced, ...]
    final: tuple[int, ...]
    dropped: tuple[tuple[int, str], ...] = ()


def text_of(interpretation: Interpretation, embed: EmbeddedText) -> str:
    """The input of f: f(q; y), the question and its answer, or f(q) alone."""
    return interpretation.question if embed == "question" else f"{interpretation.question} {interpretation.answer}"


def consolidate(interpretations: Sequence[Interpretation], vectors: MeaningVectors, options: Consolidation) -> Consolidated:
    """Clusters interpretations, none of which abstained or failed, by their vectors (n, d).  Raises ValueError if the numbers differ."""
    if len(interpretations) != len(vectors):
        raise ValueError(f"{len(interpretations)} interpretations have {len(vectors)} vectors")
    vectors = _unit(vectors)
    labels = cluster(vectors, CLUSTERING[options.clustering])
    if options.same_answer == "decides":
        labels = by_answer(labels, [i.answer for i in interpretations])
    groups = {int(label): np.flatnonzero(labels == label) for label in sorted(set(labels.tolist()) - {NOISE})}
    prefer = [i.probability for i in interpretations]
    medoids = {medoid(vectors, members, prefer): len(members) for members in groups.values()}
    dropped: list[tuple[int, str]] = []
    alone: list[int] = []
    for i in np.flatnonzero(labels == NOISE).tolist():
        if options.unclustered == "drop":
            dropped.append((i, "no other interpretation is similar, and unclustered ones are dropped"))
        elif options.unclustered == "verified" and interpretations[i].verified is False:
            dropped.append((i, "no other interpretation is similar, and its verification failed"))
        else:
            alone.append(i)
    final = sorted([*medoids, *alone], key=lambda i: (-medoids.get(i, 1), -prefer[i], i))
    placed = tuple(
        InterpretationPlaced(i, float(x), float(y), int(labels[i]), i in final) for i, (x, y) in enumerate(project(vectors))
    )
    return Consolidated(placed, tuple(final), tuple(dropped))


def _unit(vectors: MeaningVectors) -> MeaningVectors:
    """Rows scaled to length 1.  Non-finite values count as 0, and a row of zeros is unchanged."""
    if not len(vectors):
        return np.zeros((0, vectors.shape[1] if vectors.ndim == 2 else 1), np.float32)
    clean = np.nan_to_num(np.asarray(vectors, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    length = np.linalg.norm(clean, axis=1, keepdims=True)
    unit: MeaningVectors = (clean / np.where(length > 0, length, 1.0)).astype(np.float32)
    return unit


def cluster(vectors: MeaningVectors, density: Density) -> ClusterLabels:
    """HDBSCAN's labels of unit vectors (n, d): 0, 1, ... in the order of their first member, -1 for the unclustered."""
    n = len(vectors)
    if n < density.min_cluster_size or n < 2:
        return np.full(n, NOISE, np.int64)
    centre = vectors[(vectors @ vectors.sum(0)).argmax()]
    if float(np.linalg.norm(vectors - centre, axis=1).max()) < ONE_MEANING:
        assigned = np.zeros(n, np.int64)  # HDBSCAN treats equal points as noise, or as clusters of rounding errors
    elif n == 2:  # HDBSCAN needs at least three points
        assigned = np.full(2, NOISE, np.int64)
    else:
        from sklearn.cluster import HDBSCAN

        def labels(epsilon: float) -> ClusterLabels:
            model = HDBSCAN(
                min_cluster_size=density.min_cluster_size,
                min_samples=1,
                cluster_selection_epsilon=epsilon,
                metric="euclidean",
                algorithm="brute",
                copy=True,
            )
            out: ClusterLabels = model.fit_predict(vectors.astype(np.float64)).astype(np.int64)
            return out

        try:
            assigned = labels(density.epsilon)
        except TypeError:  # scikit-learn 1.9.1: the epsilon search fails when the tree has one split (many equal points)
            assigned = labels(0.0)
    return _in_order(assigned)


def _in_order(labels: ClusterLabels) -> ClusterLabels:
    """The same partition with clusters numbered by their first member.

    >>> _in_order(np.array([3, -1, 0, 3])).tolist()
    [0, -1, 1, 0]
    """
    numbers: dict[int, int] = {NOISE: NOISE}
    for label in labels.tolist():
        numbers.setdefault(label, len(numbers) - 1)
    return np.array([numbers[label] for label in labels.tolist()], np.int64)


def by_answer(labels: ClusterLabels, answers: Sequence[str]) -> ClusterLabels:
    """One cluster for each answer.  Members with another answer leave a cluster; those with the same answer, clustered or not,
    join it.

    Answers are the same when they are equal after normalisation, or when one is part of the other and both are in one cluster.

    >>> by_answer(np.array([0, 0, -1, -1]), ["1961", "2021", "The 1961", "Paris"]).tolist()
    [0, -1, 0, -1]
    """
    keys = [answer_key(a) for a in answers]
    parent = list(range(len(keys)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        parent[i] = first.setdefault(key, i)
    members: dict[int, list[int]] = {}
    for i in sorted(first.values()):
        if labels[i] != NOISE:
            members.setdefault(int(labels[i]), []).append(i)
    for indexes in members.values():
        for position, i in enumerate(indexes):
            for j in indexes[:position]:
                if root(i) != root(j) and overlapping(keys[i], keys[j]):
                    parent[max(root(i), root(j))] = min(root(i), root(j))
                    break
    roots = np.array([root(i) for i in range(len(keys))], np.int64)
    sizes = np.bincount(roots)
    return _in_order(np.where(sizes[roots] > 1, roots, NOISE))


def medoid(vectors: MeaningVectors, members: NDArray[np.int64], prefer: Sequence[float]) -> int:
    """The member with the highest sum of similarities to all members (Algorithm 1, line 13).  Ties go to the preferred member,
    then to the first."""
    inside = vectors[members]
    sums = inside @ inside.sum(0)
    best = float(sums.max())
    tied = [int(m) for m, s in zip(members, sums) if float(s) >= best - 1e-5 * max(1.0, abs(best))]
    return min(tied, key=lambda i: (-prefer[i], i))


def project(vectors: MeaningVectors) -> NDArray[np.float64]:
    """(n, 2): the first two principal components.  Signs are fixed by the largest entry of each; equal points get equal coordinates."""
    n = len(vectors)
    if n < 2:
        return np.zeros((n, 2))
    centred = vectors.astype(np.float64) - vectors.astype(np.float64).mean(0)
    if float(np.abs(centred).max()) < EQUAL_WITHIN:
        return np.zeros((n, 2))
    u, size, v = np.linalg.svd(centred, full_matrices=False)
    coordinates = np.zeros((n, 2))
    for axis in range(min(2, len(size))):
        if size[axis] > 1e-9 * size[0]:
            sign = 1.0 if v[axis][np.abs(v[axis]).argmax()] >= 0 else -1.0
            coordinates[:, axis] = sign * u[:, axis] * size[axis]
    return coordinates
