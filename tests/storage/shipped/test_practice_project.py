"""The practice project and the example of agreement: what is in them, and how practised work compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import StorageError
from core.types import Annotation, QAPair
from storage.analysis.agreement import quality
from storage.records.annotation import GenerationWork
from storage.shipped import practice
from storage.shipped.beside import ensure_database
from storage.store import Store


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from storage.schema import engine

    usual, engine.SYNCHRONOUS = engine.SYNCHRONOUS, "OFF"
    try:
        return ensure_database(tmp_path_factory.mktemp("practice") / "p.db", practice.practice)
    finally:
        engine.SYNCHRONOUS = usual


def test_all_three_stages_have_work(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        project = store.projects.find_project_named(practice.PRACTICE)
        progress = store.items.progress(project.id, "me")
        assert progress["generation"].items == 12
        assert progress["judging"].open == 12
        assert progress["validation"].open >= 2
        for stage in project.stages:
            assert store.queue.next_item(project.id, "me", stage) is not None


def test_predictions_have_their_traces(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        project = store.projects.find_project_named(practice.PRACTICE)
        for item in store.items.items(project.id, "me", stage="generation", limit=100):
            (linked,) = store.items.get_item(item.id, "me").predictions
            prediction = store.predictions.get_prediction(linked.prediction_id).prediction
            assert prediction.passages
            assert prediction.events


def test_work_is_compared_with_the_reference(file: Path) -> None:
    with Store(f"sqlite:///{file}") as store:
        project = store.projects.find_project_named(practice.PRACTICE)
        task = store.queue.next_item(project.id, "Eve", "generation")
        references = store.items.get_item(task.item, "Eve").references
        right = practice.feedback(store, task.item, "Eve", "generation", GenerationWork(references[0]))
        assert (right.score, right.right, right.references) == (1.0, True, references)
        wrong = Annotation("single", (QAPair("", ("nobody",)),))
        assert practice.feedback(store, task.item, "Eve", "generation", GenerationWork(wrong)).score == 0.0
        task = store.queue.next_item(project.id, "Eve", "judging")
        sheet = store.reviews.judging_sheet(task.item, "Eve")
        judged = practice.judged_by(sheet, store.items.get_item(task.item, "Eve").references)
        found = practice.feedback(store, task.item, "Eve", "judging", judged)
        assert found.score == 1.0
        none = practice.judged_by(sheet, [])
        assert practice.feedback(store, task.item, "Eve", "judging", none).score < 1.0


def test_the_example_has_figures_of_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.schema.engine.SYNCHRONOUS", "OFF")
    with Store(f"sqlite:///{ensure_database(tmp_path / 'e.db', practice.example)}") as store:
        project = store.projects.find_project_named(practice.EXAMPLE)
        found = quality(store, practice.MAKER, project=project.id, samples=50)
    assert all(figure.defined for figure in found.figures)
    assert found.labels.defined
    assert len(found.pairs) == 3
    assert {r.system for r in found.systems} == set(project.systems)
    people = {name for pair in found.pairs for name in (pair.first, pair.second)}
    assert all(name.endswith("(invented)") for name in people)


def test_a_database_is_whole_or_not_there(tmp_path: Path) -> None:
    def fails(store: Store) -> Any:
        assert store.maintenance.counts()  # it is open
        raise StorageError("the disk refused")

    with pytest.raises(StorageError):
        ensure_database(tmp_path / "x" / "a.db", fails)
    assert not list((tmp_path / "x").iterdir())
    calls: list[Store] = []
    for _ in range(2):
        ensure_database(tmp_path / "x" / "a.db", calls.append)
    assert len(calls) == 1
    assert [p.name for p in (tmp_path / "x").iterdir()] == ["a.db"]
