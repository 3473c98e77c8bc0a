"""Questions into a project: all of a call in one transaction, each question once, stored predictions linked, in the project's order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from annotation_samples import project, questions
from storage_samples import prediction

from core.errors import InputError
from core.types import ReferenceQuestion
from storage.annotation import intake, linked_predictions
from storage.annotation.intake import Intake
from storage.store import Store


@pytest.mark.parametrize(
    ("limit", "last", "words"),
    [("", " ", "question 9"), ("MAX_ITEMS", "Who else?", "at most 6"), ("MAX_QUESTIONS", "Who else?", "at most 6")],
)
def test_an_error_in_the_middle_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, limit: str, last: str, words: str
) -> None:
    parts = project(store, 1)
    before = store.maintenance.counts()
    if limit:
        monkeypatch.setattr(intake, limit, 6)
    with pytest.raises(InputError, match=words):
        store.intake.add_items("Mia", parts.id, [*questions(8), ReferenceQuestion("q", last, ())])
    assert store.maintenance.counts() == before


def test_validation_alone_refuses_gold_and_takes_the_questions_afterwards(store: Store) -> None:
    parts = project(store, 0, stages=("validation",))
    with pytest.raises(InputError, match="gold"):
        store.intake.add_items("Mia", parts.id, questions(2), gold=True)
    assert store.intake.add_items("Mia", parts.id, questions(2)).added == 2


def test_what_somebody_else_adds_meanwhile_is_not_added_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = project(store, 1)
    new_items, others = Intake._new_items, [[replace(q, id=f"other {q.id}") for q in questions(3, start=4)]]

    def overtaken(*args: Any) -> list[Any]:
        items = new_items(*args)
        if others:
            store.intake.add_items("Mia", parts.id, others.pop())
        return items

    monkeypatch.setattr(Intake, "_new_items", staticmethod(overtaken))
    report = store.intake.add_items("Mia", parts.id, questions(6))
    assert (report.added, report.known) == (3, 3)  # the first one was there, and two came meanwhile under other ids
    assert len(store.items.items(parts.id, "Mia", stage="generation")) == 7


@pytest.mark.parametrize("order", ["uncertainty", "file"])
def test_stored_predictions_are_linked_and_margins_are_there_when_the_order_needs_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(linked_predictions, "PORTION", 2)
    parts = project(store, 0, stages=("judging",), systems=("ambigprompt",), order=order)
    asked = [prediction(f"Who played part {i}?", id=f"q{i}") for i in range(7)]
    for one in asked[:4]:
        store.predictions.save_prediction(one)
    added = store.intake.add_items("Mia", parts.id, questions(7))
    assert (added.added, added.linked) == (7, 4)
    for one in asked[4:]:
        store.predictions.save_prediction(one)
    assert store.intake.add_items("Mia", parts.id, questions(1)).linked == 3
    assert store.intake.link_predictions("Mia", parts.id) == 0
    store.projects.update_project("Mia", parts.id, parts.version, order="uncertainty")
    order = [(i.margin, i.position) for i in store.items.items(parts.id, "Mia", stage="judging")]
    assert order == sorted(order)  # none of them is None
