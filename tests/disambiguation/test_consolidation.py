"""Consolidation: any vectors give a partition and medoids; the same ones give the same; degenerate clouds are no error."""

from __future__ import annotations

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


def said(answers: list[str], verified: bool | None = None) -> list[Interpretation]:
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
    found = consolidate(said(answers), cloud, how)
    assert [p.index for p in found.placed] == list(range(len(cloud)))
    assert len(set(found.final)) == len(found.final)
    assert set(found.final).isdisjoint(i for i, _ in found.dropped)
    clusters = {p.cluster for p in found.placed} - {NOISE}
    for cluster in clusters:
        members = [p for p in found.placed if p.cluster == cluster]
        assert sum(p.medoid for p in members) == 1
    alone = [p.index for p in found.placed if p.cluster == NOISE]
    assert set(alone) == {i for i in alone if i in found.final or i in dict(found.dropped)}
    assert {p.index for p in found.placed if p.medoid} == set(found.final)
    assert all(np.isfinite([p.x, p.y]).all() for p in found.placed)
    assert consolidate(said(answers), cloud, how) == found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["Ada", "ada!", "Bo", "The Bo", "Cy"]), max_size=12), st.data())
def test_one_cluster_an_answer(answers: list[str], data: st.DataObject) -> None:
    labels = np.array([data.draw(st.integers(-1, 3)) for _ in answers], np.int64)
    found = by_answer(labels, answers).tolist()
    same = {"Ada": "a", "ada!": "a", "Bo": "b", "The Bo": "b", "Cy": "c"}
    for i, a in enumerate(answers):
        for j, b in enumerate(answers):
            if i != j:
                together = found[i] != NOISE and found[i] == found[j]
                assert together == (same[a] == same[b])


def test_the_medoid_is_most_like_the_others_and_ties_go_to_the_surer() -> None:
    vectors = rows(0.0, 0.3, 0.7)
    assert medoid(vectors, np.array([0, 1, 2]), [0.9, 0.1, 0.9]) == 1
    assert medoid(rows(0.0, 0.4), np.array([0, 1]), [0.2, 0.8]) == 1
    assert medoid(rows(0.0, 0.4), np.array([0, 1]), [0.5, 0.5]) == 0


def test_two_meanings_and_a_stray_one() -> None:
    vectors = rows(0.0, 0.02, 0.04, 0.8, 0.82, 0.85, 3.0)
    answers = ["Ada", "Ada", "Ada", "Bo", "Bo", "Bo", "Cy"]
    for same in ("decides", "ignored"):
        found = consolidate(said(answers, verified=False), vectors, Consolidation(same_answer=same))  # type: ignore[arg-type]
        assert [p.cluster for p in found.placed] == [0, 0, 0, 1, 1, 1, NOISE]
        assert found.final == (1, 4)
        assert [i for i, _ in found.dropped] == [6]


@pytest.mark.parametrize(
    ("unclustered", "verified", "kept"),
    [("verified", True, 1), ("verified", False, 0), ("verified", None, 1), ("keep", False, 1), ("drop", True, 0)],
)
def test_what_becomes_of_an_unclustered_one(unclustered: str, verified: bool | None, kept: int) -> None:
    found = consolidate(said(["Ada"], verified), rows(0.3), Consolidation(unclustered=unclustered))  # type: ignore[arg-type]
    assert (len(found.final), len(found.dropped)) == (kept, 1 - kept)


@pytest.mark.parametrize("how", WAYS)
def test_none_one_and_two(how: Consolidation) -> None:
    assert consolidate([], np.zeros((0, 5), np.float32), how).placed == ()
    assert len(consolidate(said(["Ada"]), rows(0.1), how).placed) == 1
    assert len(consolidate(said(["Ada", "Bo"]), rows(0.1, 2.0), how).placed) == 2


def test_two_of_one_answer_are_one_interpretation() -> None:
    found = consolidate(said(["Ada", "ada"]), rows(0.1, 2.0), Consolidation())
    assert len(found.final) == 1


@pytest.mark.parametrize("value", [0.0, 1.0, float("nan")])
def test_embeddings_that_are_all_equal(value: float) -> None:
    vectors = np.full((30, 8), value, np.float32)
    found = consolidate(said(["Ada"] * 30), vectors, Consolidation(same_answer="ignored"))
    assert len(found.final) == 1
    assert {(p.x, p.y) for p in found.placed} == {(0.0, 0.0)}


def test_conservative_gives_fewer() -> None:
    vectors = rows(0.0, 0.01, 1.0, 1.01, 2.0, 2.01, 2.02)
    answers = [f"answer {i}" for i in range(7)]
    many = consolidate(said(answers), vectors, Consolidation(unclustered="drop", same_answer="ignored"))
    few = consolidate(said(answers), vectors, Consolidation("conservative", unclustered="drop", same_answer="ignored"))
    assert len(few.final) < len(many.final) == 3


def test_the_map_keeps_distances_of_a_plane() -> None:
    vectors = rows(0.0, 0.5, 1.0, 2.0)
    placed = project(vectors)
    for i in range(4):
        for j in range(4):
            assert np.linalg.norm(placed[i] - placed[j]) == pytest.approx(np.linalg.norm(vectors[i] - vectors[j]), abs=1e-5)


def test_what_is_embedded() -> None:
    one = said(["Ada"])[0]
    assert text_of(one, "question") == "Who, 0?"
    assert text_of(one, "question and answer") == "Who, 0? Ada"


def test_each_interpretation_has_a_vector() -> None:
    with pytest.raises(ValueError, match="1 interpretations have 2 vectors"):
        consolidate(said(["Ada"]), rows(0.0, 1.0), Consolidation())
