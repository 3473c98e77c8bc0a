"""Projects and contents for the tests of the annotation workbench."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from core import types as t
from storage.access import passwords
from storage.annotation.places import item_row
from storage.records.annotation import GenerationWork, JudgedAnswer, JudgingSheet, JudgingWork, Task, ValidationWork
from storage.records.enumerations import WorkStage
from storage.records.projects import GuidelineExample, Project
from storage.schema import engine, tables, workbench
from storage.store import Store


def hash_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(passwords, "_hasher", lambda: quick)
    passwords._dummy_hash.cache_clear()


class Clock:
    """A time that passes only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)
        monkeypatch.setattr(engine, "now", lambda: self.time)

    def pass_(self, **span: float) -> None:
        self.time += timedelta(**span)


def questions(count: int, start: int = 0) -> list[t.ReferenceQuestion]:
    return [
        t.ReferenceQuestion(
            f"q{i}", f"Who played part {i}?", (t.Annotation("single", (t.QAPair(f"Who played part {i}?", ("Somebody",)),)),)
        )
        for i in range(start, start + count)
    ]


def project(store: Store, count: int = 3, *, by: str = "Mia", **options: Any) -> Project:
    """A project with `count` items; nothing has to be read unless `thresholds` say so."""
    record = store.projects.create_project(by, options.pop("name", "parts"), **{"thresholds": {"must_read": 0}, **options})
    if count:
        store.intake.add_items(by, record.id, questions(count))
    return record


def multiple(*answers: str, question: str = "Who played it in {}?") -> t.Annotation:
    return t.Annotation("multiple", tuple(t.QAPair(question.format(a), (a,)) for a in answers))


def single(answer: str = "Ada") -> t.Annotation:
    return t.Annotation("single", (t.QAPair("", (answer,)),))


def work(*answers: str) -> GenerationWork:
    return GenerationWork(single(*answers) if len(answers) == 1 else multiple(*answers) if answers else t.Annotation("none"))


def take(store: Store, project: Project, annotator: str, stage: WorkStage = "generation") -> Task:
    task = store.queue.next_item(project.id, annotator, stage)
    assert task is not None
    return task


def task_of(store: Store, item: str, annotator: str) -> Task | None:
    """A person's task of annotating an item; None before they opened it."""
    tasks = store.queue.tasks(store.items.get_item(item, annotator).project, annotator, annotator=annotator, limit=500)
    return next((task for task in tasks if (task.item, task.stage) == (item, "generation")), None)


def do(store: Store, project: Project, annotator: str, *answers: str) -> Task:
    """Takes the next item and submits these answers."""
    task = take(store, project, annotator)
    store.submissions.submit(task.item, annotator, "generation", work(*answers), seconds=10)
    return task


def validate(store: Store, item: str, by: str, annotation: t.Annotation, note: str = "") -> None:
    review = store.reviews.validation_input(item, by)
    content = ValidationWork(annotation, note=note, sources=review.sources)
    store.submissions.submit(item, by, "validation", content, seconds=5, expected_version=review.expected_version)


def judge_all(sheet: JudgingSheet, verdict: Any = "correct", errors: tuple[str, ...] = (), **more: Any) -> JudgingWork:
    return JudgingWork(
        tuple(
            JudgedAnswer(a.prediction_id, a.position, verdict, "fits" if a.question is not None else None, errors=errors)
            for side in sheet.sides
            for a in side.answers
        ),
        **more,
    )


def states(store: Store, project: Project, stage: WorkStage = "generation", by: str = "Mia") -> Sequence[str]:
    return [i.state for i in store.items.items(project.id, by, stage=stage, limit=500)]


def fill_workbench(store: Store) -> None:
    """After storage_samples.fill: a row of every kind of the workbench, without new questions and without touching what `fill` judged."""
    q = tables.Question
    with store.database.reading() as session:
        questions = session.execute(select(q.text, q.source_id).order_by(q.created.desc(), q.id.desc())).all()
    reference = (t.Annotation("single", (t.QAPair("", ("1932",)),)),)
    sample = store.projects.create_project(
        "Mia",
        "sample",
        guidelines="# Read",
        examples=[GuidelineExample(True, "Who?", single(), "one")],
        systems=["ambigprompt"],
    )
    store.intake.add_items(
        "Mia", sample.id, [t.ReferenceQuestion(name, text, reference) for text, name in questions], gold=True
    )
    gold = store.items.items(sample.id, "Mia", stage="generation")[0].id
    first = store.queue.claim_item(gold, "Ada", "generation")
    store.drafts.log_search(first.item, "Ada", "generation", "bridge")
    store.drafts.log_view(first.item, "Ada", "generation", "p1", "Title 1")
    store.drafts.save_draft(first.item, "Ada", "generation", {"text": "half"})
    store.submissions.submit(first.item, "Ada", "generation", work("1932"), seconds=4)
    second = store.queue.claim_item(gold, "Bob", "generation")
    store.drafts.save_draft(second.item, "Bob", "generation", {"text": "open"})
    store.comments.comment(first.item, "Ada", "Is it the bridge of 1932?")
    store.comments.mark_read(first.item, "Mia")
    store.comments.resolve(store.comments.thread(first.item, "Mia").comments[0].id, "Mia")
    with store.database.writing() as session:  # every question here is gold, and gold is assigned to nobody
        item = item_row(session, second.item)
        ada = session.scalars(select(tables.Annotator.id).filter_by(name="Ada")).one()
        session.add(workbench.Assignment(item_id=item.id, stage="generation", annotator_id=ada, created=engine.now()))
    store.people.add_person("Mia", "Mia", "manager", "a long password")
