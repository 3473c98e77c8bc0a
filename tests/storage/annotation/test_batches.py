"""Large projects are changed in portions: others save in between, nobody sees half of it, and a kill leaves nothing behind."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from annotation_samples import Clock, do, project, questions, take, work
from sqlalchemy import text
from storage_samples import prediction

from core.errors import ConflictError, InputError
from core.types import ReferenceQuestion
from storage.annotation import intake, jobs, pace
from storage.annotation.intake import Intake
from storage.exchange import votes
from storage.records.enumerations import Job
from storage.schema import engine, workbench
from storage.store import Store


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """Portions of two items; what is put in here is called once, after the next one, when nobody holds the lock."""
    calls: list[Callable[[], None]] = []
    for module in (intake, pace):
        monkeypatch.setattr(module, "AT_ONCE", 2)

    def rest(self: pace.Pace, seconds: float) -> None:
        if calls:
            calls.pop(0)()

    monkeypatch.setattr(pace.Pace, "rest", rest)
    return calls


def ranks(store: Store) -> list[int]:
    """Positions in the order of the generation queue."""
    with store.database.reading() as session:
        rows = session.execute(
            text("SELECT i.position FROM item_stage s JOIN project_item i ON i.id = s.item_id ORDER BY s.rank, s.item_id")
        )
        return [position for (position,) in rows]


def test_a_save_gets_through_while_items_are_added_and_none_of_them_is_there_yet(
    store: Store, between: list[Callable[[], None]], tmp_path: Path
) -> None:
    made = project(store, 1, stages=("generation", "judging"), systems=("ambigprompt",), gold_first=1)
    seen: list[str] = []

    def look() -> None:
        (only,) = store.items.items(made.id, "Mia", stage="generation")
        progress = store.items.progress(made.id, "Mia")["generation"]
        assert (progress.items, progress.open) == (1, 1)
        assert store.projects.qualification(made.id, "Ada").needed == 0  # those that are being added are qualification items
        task = take(store, made, "Ada")
        assert task.item == only.id
        store.drafts.save_draft(task.item, "Ada", "generation", {"text": "saved in between"}, 0)
        store.submissions.submit(task.item, "Ada", "generation", work("x"), seconds=1)
        assert store.queue.next_item(made.id, "Ada", "generation") is None
        store.exports.export("jsonl", tmp_path / "dump.jsonl")
        lines = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text().splitlines()]
        kinds = [line["kind"] for line in lines]
        assert (kinds.count("item"), kinds.count("item_stage")) == (1, 2)
        seen.append(task.item)

    between.append(look)
    report = store.intake.add_items("Mia", made.id, questions(9), gold=True)
    assert (report.added, report.known, len(seen)) == (8, 1, 1)
    assert [i.position for i in store.items.items(made.id, "Mia", stage="generation")] == list(range(9))
    assert store.projects.qualification(made.id, "Ada").needed == 1
    assert store.maintenance.counts()["project_job"] == 0
    again = store.intake.add_items("Mia", made.id, [*questions(12), *questions(12)])
    assert (again.added, again.known) == (3, 21)
    assert [a.details["added"] for a in store.people.activity("Mia", action="items added")] == [3, 8, 1]


def test_predictions_are_linked_in_portions(store: Store, between: list[Callable[[], None]]) -> None:
    made = project(store, 0, stages=("judging",), systems=("ambigprompt",), order="uncertainty")
    asked = [prediction(f"Who played part {i}?", id=f"q{i}") for i in range(7)]
    for one in asked[:4]:
        store.predictions.save_prediction(one)
    seen: list[int] = []

    def look() -> None:
        with store.database.reading() as session:  # what exports of a project go through
            chunks = votes.chunks(session, votes.Filters(project=made.id))
            seen.append(sum(len(chunk) for chunk in chunks))

    between.append(look)
    added = store.intake.add_items("Mia", made.id, questions(7))
    look()
    assert (added.added, added.linked, seen) == (7, 4, [0, 7])
    for one in asked[4:]:
        store.predictions.save_prediction(one)
    assert store.intake.add_items("Mia", made.id, questions(1)).linked == 3  # one portion here, the rest after it
    assert store.intake.link_predictions("Mia", made.id) == 0
    assert all(i.margin is not None for i in store.items.items(made.id, "Mia", stage="judging"))


def test_an_error_in_the_middle_leaves_nothing(
    store: Store, between: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(store, 1)
    before = store.maintenance.counts()
    with pytest.raises(InputError, match="question 8"):
        store.intake.add_items("Mia", made.id, [*questions(7), ReferenceQuestion("q", " ", ())])
    assert store.maintenance.counts() == before
    monkeypatch.setattr(intake, "MAX_ITEMS", 6)
    with pytest.raises(InputError, match="at most 6"):
        store.intake.add_items("Mia", made.id, questions(9))
    assert store.maintenance.counts() == before


def die(url: str, name: str) -> None:
    intake.AT_ONCE = pace.AT_ONCE = 2
    finished = 0

    def rest(self: pace.Pace, seconds: float) -> None:
        nonlocal finished
        finished += 1
        if finished == 3:
            os._exit(9)

    pace.Pace.rest = rest  # type: ignore[method-assign]
    with Store(url) as store:
        store.intake.add_items("Mia", name, questions(20))


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_nothing_and_the_next_call_cleans_up(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(store, 1)
    before = store.maintenance.counts()
    process = multiprocessing.get_context("spawn").Process(target=die, args=(url, made.id))
    process.start()
    process.join()
    assert process.exitcode == 9
    left = store.maintenance.counts()
    assert (left["project_item"], left["project_job"]) == (7, 1)  # the one of before, and three portions of new ones
    assert store.items.progress(made.id, "Mia")["generation"].items == 1
    do(store, made, "Ada", "x")
    assert store.queue.next_item(made.id, "Ada", "generation") is None
    monkeypatch.setattr(intake, "WAIT_SECONDS", 0.0)
    with pytest.raises(ConflictError, match="right now"):  # it may be alive
        store.intake.add_items("Mia", made.id, questions(1, start=50))
    Clock(monkeypatch).time = engine.now() + 2 * jobs.STALE
    report = store.intake.add_items("Mia", made.id, questions(2, start=50))
    assert (report.added, report.known) == (2, 0)
    found = store.maintenance.counts()
    assert (found["project_item"], found["project_job"], found["question"]) == (3, 0, before["question"] + 2)
    assert [i.position for i in store.items.items(made.id, "Mia", stage="generation")] == [0, 1, 2]
    assert store.maintenance.health(full=True).ok


def test_who_was_taken_for_dead_changes_nothing_more(
    store: Store, between: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(store, 1)
    clock = Clock(monkeypatch)
    monkeypatch.setattr(intake, "WAIT_SECONDS", 0.0)

    def overtake() -> None:
        clock.time += 2 * jobs.STALE
        assert store.intake.add_items("Mia", made.id, questions(2, start=50)).added == 2
        monkeypatch.setattr(Intake, "_add", lambda *_: pytest.fail("it must not begin again here"))

    between.append(overtake)
    with pytest.raises(ConflictError, match="took over"):
        store.intake.add_items("Mia", made.id, questions(9))
    assert [i.position for i in store.items.items(made.id, "Mia", stage="generation")] == [0, 1, 2]


def test_the_order_changes_in_portions_and_goes_on_after_a_kill(
    store: Store, between: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = project(store, 9, seed=3)
    clock = Clock(monkeypatch)
    drafts: list[int] = []

    def save() -> None:
        task = take(store, made, "Ada")
        drafts.append(store.drafts.save_draft(task.item, "Ada", "generation", {"text": "in between"}, 0).version)

    between.append(save)
    made = store.projects.update_project("Mia", made.id, made.version, order="random")
    shuffled = ranks(store)
    assert (drafts, sorted(shuffled)) == ([1], list(range(9)))
    assert shuffled != list(range(9))
    between.append(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.projects.update_project("Mia", made.id, made.version, order="file")
    made = store.projects.get_project(made.id)
    assert (made.order, store.maintenance.counts()["project_job"]) == ("file", 1)
    assert ranks(store) != list(range(9))
    store.projects.update_project("Mia", made.id, made.version, name="parts")  # it may be alive
    assert ranks(store) != list(range(9))
    clock.time += 2 * jobs.STALE
    store.projects.update_project("Mia", made.id, made.version, name="parts")
    assert (ranks(store), store.maintenance.counts()["project_job"]) == (list(range(9)), 0)


def test_of_two_orders_the_last_one_wins(store: Store, between: list[Callable[[], None]]) -> None:
    made = project(store, 0, annotators_per_item=2)
    for start in range(0, 9, 3):
        store.intake.add_items("Mia", made.id, questions(3, start=start))
    first = take(store, made, "Ada").item
    store.submissions.submit(first, "Ada", "generation", work("x"), seconds=1)
    store.queue.claim_item(first, "Bob", "generation")
    store.submissions.submit(first, "Bob", "generation", work("y"), seconds=1)

    def change() -> None:
        now = store.projects.get_project(made.id)
        store.projects.update_project("Mia", made.id, now.version, order="file")

    between.append(change)
    store.projects.update_project("Mia", made.id, made.version, order="disagreement")
    assert store.projects.get_project(made.id).order == "file"
    assert (ranks(store), store.maintenance.counts()["project_job"]) == (list(range(9)), 0)


def test_the_kinds_of_jobs_are_those_of_the_database(store: Store) -> None:
    made = project(store, 1)
    with store.database.writing() as session:
        number = workbench.Project.id
        row = session.query(number).filter_by(public_id=made.id).scalar()
        for kind in get_args(Job):
            jobs.begin(session, row, kind, 0)
    assert store.maintenance.counts()["project_job"] == 2
