"""Consolidation: any vectors give a partition and medoids; the same ones give the same; degenerate clouds are no error."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from core.disambiguation.consolidation import NOISE, Consolidation, by_answer, consolidate, medoid, project, text_of
from core.types import Interpretation

WAYS = [
    Consolidation(),
    Consolidation("conservative", "question", "drop", "ignored"),
    Consolidation("default", "question and answer", "keep", "ignored"),
]


def interpretations(answers: list[str], verified: bool | None = None) -> list[Interpretation]:
    return [Interpretation(f"p{i}", f"Who, {i}?", a, 0.5, verified=verified) for i, a in enumerate(answers)]


def rows(*angles: float) -> np.ndarray:
    """Unit vectors of the plane in eight dimensions."""
    out = np.zeros((len(angles), 8), np.float32)
    out[:, 0], out[:, 1] = np.cos(angles), np.sin(angles)
    return out


clouds = st.integers(0, 24).flatmap(
    lambda n: arrays(np.float32, (n, 5), elements=st.floats(-2, 2, width=32, allow_nan=False, allow_infinity=False))
)


@settings(max_examples=30, deadline=None)
@given(clouds, st.sampled_from(WAYS), st.data())
def test_every_interpretation_is_placed_and_every_cluster_has_one_medoid(
    cloud: np.ndarray, how: Consolidation, data: st.DataObject
) -> None:
    answers = [data.draw(st.sampled_from(["Ada", "Bo", "the Ada", "Cy Dee", "?"])) for _ in cloud]
    result = consolidate(interpretations(answers), cloud, how)
    assert [p.index for p in result.placed] == list(range(len(cloud)))
    assert len(set(result.final)) == len(result.final)
    dropped = {i for i, _ in result.dropped}
    assert dropped.isdisjoint(result.final)
    medoids = [p.cluster for p in result.placed if p.medoid and p.cluster != NOISE]
    assert sorted(medoids) == sorted({p.cluster for p in result.placed} - {NOISE})
    assert {p.index for p in result.placed if p.cluster == NOISE} <= dropped | set(result.final)
    assert {p.index for p in result.placed if p.medoid} == set(result.final)
    assert all(np.isfinite([p.x, p.y]).all() for p in result.placed)
    assert consolidate(interpretations(answers), cloud, how) == result


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["Ada", "ada!", "Bo", "The Bo", "Cy"]), max_size=12), st.data())
def test_one_cluster_an_answer(answers: list[str], data: st.DataObject) -> None:
    labels = np.array([data.draw(st.integers(-1, 3)) for _ in answers], np.int64)
    clusters = by_answer(labels, answers).tolist()
    keys = [{"ada!": "Ada", "The Bo": "Bo"}.get(answer, answer) for answer in answers]
    for i, j in itertools.combinations(range(len(answers)), 2):
        together = clusters[i] != NOISE and clusters[i] == clusters[j]
        assert together == (keys[i] == keys[j])


def test_the_medoid_is_most_like_the_others_and_ties_go_to_the_surer() -> None:
    assert medoid(rows(0.0, 0.3, 0.7), np.array([0, 1, 2]), [0.9, 0.1, 0.9]) == 1
    assert medoid(rows(0.0, 0.4), np.array([0, 1]), [0.2, 0.8]) == 1
    assert medoid(rows(0.0, 0.4), np.array([0, 1]), [0.5, 0.5]) == 0


@pytest.mark.parametrize("same", ["decides", "ignored"])
def test_two_meanings_and_a_stray_one(same: Any) -> None:
    vectors = rows(0.0, 0.02, 0.04, 0.8, 0.82, 0.85, 3.0)
    answers = ["Ada", "Ada", "Ada", "Bo", "Bo", "Bo", "Cy"]
    result = consolidate(interpretations(answers, verified=False), vectors, Consolidation(same_answer=same))
    assert [p.cluster for p in result.placed] == [0, 0, 0, 1, 1, 1, NOISE]
    assert result.final == (1, 4)
    assert [i for i, _ in result.dropped] == [6]


@pytest.mark.parametrize(
    ("unclustered", "verified", "final"),
    [("verified", True, 1), ("verified", False, 0), ("verified", None, 1), ("keep", False, 1), ("drop", True, 0)],
)
def test_what_becomes_of_an_unclustered_one(unclustered: Any, verified: bool | None, final: int) -> None:
    result = consolidate(interpretations(["Ada"], verified), rows(0.3), Consolidation(unclustered=unclustered))
    assert (len(result.final), len(result.dropped)) == (final, 1 - final)


@pytest.mark.parametrize("value", [0.0, 1.0, float("nan")])
def test_embeddings_that_are_all_equal(value: float) -> None:
    vectors = np.full((30, 8), value, np.float32)
    result = consolidate(interpretations(["Ada"] * 30), vectors, Consolidation(same_answer="ignored"))
    assert len(result.final) == 1
    assert {(p.x, p.y) for p in result.placed} == {(0.0, 0.0)}


def test_conservative_gives_fewer() -> None:
    vectors = rows(0.0, 0.01, 1.0, 1.01, 2.0, 2.01, 2.02)
    some = interpretations([f"answer {i}" for i in range(7)])
    many, few = (
        consolidate(some, vectors, Consolidation(clustering, unclustered="drop", same_answer="ignored"))
        for clustering in ("default", "conservative")
    )
    assert len(few.final) < len(many.final) == 3


def test_the_map_keeps_distances_of_a_plane() -> None:
    vectors = rows(0.0, 0.5, 1.0, 2.0)
    on_map, between = (np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (project(vectors), vectors))
    assert on_map == pytest.approx(between, abs=1e-5)


def test_each_interpretation_has_a_text_and_a_vector() -> None:
    (one,) = interpretations(["Ada"])
    assert text_of(one, "question") == "Who, 0?"
    assert text_of(one, "question and answer") == "Who, 0? Ada"
    with pytest.raises(ValueError, match="1 interpretations have 2 vectors"):
        consolidate(interpretations(["Ada"]), rows(0.0, 1.0), Consolidation())
