"""Actions of a manager on several items at once."""

from __future__ import annotations

import pytest
from annotation_samples import do, project, single, states, take, validate, work
from storage_samples import prediction

from core.errors import InputError, NotFoundError
from storage.records.projects import Project
from storage.store import Store


def ids(store: Store, parts: Project) -> list[str]:
    return [i.id for i in store.items.items(parts.id, "Mia", stage=parts.stages[0], limit=100)]


def test_items_that_nobody_has_opened_are_removed(store: Store) -> None:
    parts = project(store, 4, systems=("fid",))
    first, second, third, fourth = ids(store, parts)
    store.intake.save_for_item("Mia", second, prediction("Who played part 1?", ["a"], id="q1", system="fid"))
    store.assignments.assign("Mia", parts.id, "generation", {2: ["Ada"]})
    do(store, parts, "Bob", "x")
    with pytest.raises(InputError, match="item 1 cannot be removed"):
        store.selection.remove_items("Mia", parts.id, [second, first])
    assert len(ids(store, parts)) == 4  # all or none
    assert store.selection.remove_items("Mia", parts.id, [third, second]) == 2
    assert ids(store, parts) == [first, fourth]
    assert len(store.predictions.recent_predictions()) == 1
    with pytest.raises(NotFoundError):
        store.selection.remove_items("Mia", parts.id, [second])
    with pytest.raises(InputError, match="no item"):
        store.selection.remove_items("Mia", parts.id, [])


def test_finished_items_are_reopened(store: Store) -> None:
    parts = project(store, 3, annotators_per_item=2, stages=("generation", "validation"))
    for name in ("Ada", "Bob"):
        for _ in range(2):
            do(store, parts, name, "x")  # agreed: validated without a person
    first, second, third = ids(store, parts)
    count = store.selection.reopen_items("Mia", parts.id, "generation", [first, third], "Other years count, too.")
    assert count == 2
    assert states(store, parts) == ["open", "done", "open"]
    assert states(store, parts, "validation") == ["waiting", "done", "waiting"]
    task = take(store, parts, "Ada")
    assert (task.item, task.state, task.reason) == (first, "returned", "Other years count, too.")
    with pytest.raises(InputError, match="reason"):
        store.selection.reopen_items("Mia", parts.id, "generation", [second], " ")


def test_what_a_person_validated_is_reopened_at_its_own_stage_first(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2, stages=("generation", "validation"))
    item = do(store, parts, "Ada", "x").item
    do(store, parts, "Bob", "y")
    take(store, parts, "Vera", "validation")
    validate(store, item, "Vera", single("x"))
    with pytest.raises(InputError, match="validated already"):
        store.selection.reopen_items("Mia", parts.id, "generation", [item], "Again.")
    assert states(store, parts) == ["done"]
    assert store.selection.reopen_items("Mia", parts.id, "validation", [item], "Again.") == 1
    assert store.selection.reopen_items("Mia", parts.id, "generation", [item], "Again.") == 2


def test_single_items_take_more_people(store: Store) -> None:
    parts = project(store, 3)
    first, second, _ = ids(store, parts)
    do(store, parts, "Ada", "x")
    store.selection.set_people("Mia", parts.id, [first, second], 2)
    assert states(store, parts) == ["open", "open", "open"]
    progress = store.items.progress(parts.id, "Mia")["generation"]
    assert (progress.slots, progress.open_slots, progress.submitted) == (5, 5, 1)
    do(store, parts, "Bob", "y")
    assert states(store, parts) == ["done", "open", "open"]
    with pytest.raises(InputError, match="held beyond 1"):
        store.selection.set_people("Mia", parts.id, [first], 1)
    store.selection.set_people("Mia", parts.id, [second], 1)
    assert store.items.progress(parts.id, "Mia")["generation"].slots == 4
    with pytest.raises(InputError, match="1 to 100"):
        store.selection.set_people("Mia", parts.id, [first], 0)


def test_a_finished_item_becomes_gold(store: Store) -> None:
    parts = project(store, 2, annotators_per_item=2, stages=("generation", "validation"), gold_rate=0.5)
    first, second = ids(store, parts)
    do(store, parts, "Ada", "x")
    with pytest.raises(InputError, match="no final answer set"):
        store.selection.make_gold("Mia", parts.id, first)
    do(store, parts, "Bob", "x")
    store.selection.make_gold("Mia", parts.id, first)
    item = store.items.get_item(first, "Mia")
    assert (item.gold, item.references[0].pairs[0].answers) == (True, ("x",))
    assert store.items.progress(parts.id, "Mia")["generation"].items == 1
    assert store.queue.claim_item(first, "Cleo", "generation") is not None
    sent = store.submissions.submit(first, "Cleo", "generation", work("x"), seconds=1)
    assert sent.score == 1.0
    assert store.queue.next_item(parts.id, "Vera", "validation") is None  # nobody validates gold
    with pytest.raises(InputError, match="gold item already"):
        store.selection.make_gold("Mia", parts.id, first)
    assert second in ids(store, parts)
