"""The practice project and the example of agreement: what is in them, and how practised work compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from annotation_samples import take, work

from core.errors import StorageError
from storage.analysis.agreement import quality
from storage.records.annotation import GenerationWork
from storage.records.projects import Project
from storage.shipped import practice
from storage.shipped.beside import ensure_database
from storage.store import Store


@pytest.fixture(scope="module")
def practised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Project]]:
    file = ensure_database(tmp_path_factory.mktemp("practice") / "p.db", practice.practice)
    with Store(f"sqlite:///{file}") as store:
        yield store, store.projects.find_project_named(practice.PRACTICE)


def test_all_three_stages_have_work(practised: tuple[Store, Project]) -> None:
    store, project = practised
    progress = store.items.progress(project.id, "me")
    assert (progress["generation"].items, progress["judging"].open) == (12, 12)
    assert progress["validation"].open >= 2
    for stage in project.stages:
        assert store.queue.next_item(project.id, "me", stage) is not None


def test_work_is_compared_with_the_reference(practised: tuple[Store, Project]) -> None:
    store, project = practised
    item = take(store, project, "Eve").item
    references = store.items.get_item(item, "Eve").references
    right = practice.feedback(store, item, "Eve", "generation", GenerationWork(references[0]))
    assert (right.score, right.right, right.references) == (1.0, True, references)
    assert practice.feedback(store, item, "Eve", "generation", work("nobody")).score == 0.0
    item = take(store, project, "Eve", "judging").item
    sheet, references = store.reviews.judging_sheet(item, "Eve"), store.items.get_item(item, "Eve").references
    assert sheet.passages
    right, none = (
        practice.feedback(store, item, "Eve", "judging", practice.judged_by(sheet, answers)) for answers in (references, [])
    )
    assert none.score < right.score == 1.0


def test_the_example_has_figures_of_agreement(tmp_path: Path) -> None:
    with Store(f"sqlite:///{ensure_database(tmp_path / 'e.db', practice.example)}") as store:
        project = store.projects.find_project_named(practice.EXAMPLE)
        figures = quality(store, practice.MANAGER_NAME, project=project.id, samples=50)
    assert all(figure.defined for figure in (*figures.figures, figures.labels))
    assert len(figures.pairs) == 3
    assert {r.system for r in figures.systems} == set(project.systems)


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


def test_a_database_that_another_process_made_meanwhile_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with ExitStack() as stack:

        def fill(_store: Store) -> None:
            other = stack.enter_context(Store(f"sqlite:///{file}"))
            assert other.maintenance.counts()  # it is open
            stack.callback(other.database.check_file)

        assert ensure_database(file, fill) == file
