"""The queue of the annotation workbench: slots, leases, returns, undo; on SQLite and, where there is a server, on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from annotation_samples import Clock, do, multiple, project, single, states, take, task_of, validate, work
from sqlalchemy import select, text
from storage_helpers import at_once

from core.errors import ConflictError, InputError, NotFoundError, StorageError
from storage.records.projects import Project
from storage.results.standing import annotated, submitted
from storage.schema import tables
from storage.store import Store


def test_each_item_gets_exactly_its_number_of_people(store: Store) -> None:
    parts = project(store, 2, annotators_per_item=2)
    item = take(store, parts, "Ada").item
    second = take(store, parts, "Bob")
    assert (second.item, second.slot) == (item, 1)
    assert take(store, parts, "Cleo").item != item  # both slots are taken
    assert store.queue.claim_item(item, "Cleo", "generation") is None
    again = take(store, parts, "Ada")
    assert (again.item, again.slot) == (item, 0)  # one's own open item comes back
    do(store, parts, "Ada", "x")
    do(store, parts, "Bob", "y")
    assert states(store, parts) == ["done", "open"]
    assert {take(store, parts, n).slot for n in ("Ada", "Cleo")} == {0, 1}
    assert store.queue.next_item(parts.id, "Bob", "generation") is None
    progress = store.items.progress(parts.id, "Mia")["generation"]
    assert (progress.items, progress.done, progress.slots, progress.submitted, progress.leased) == (2, 1, 4, 2, 2)
    assert store.items.progress(parts.id, "Ada", "Ada")["generation"].submitted == 1
    assert store.items.progress(parts.id, "Mia", stage="generation") == {"generation": progress}
    assert store.items.submitted(parts.id, "Ada", "generation") == 2


def test_the_database_itself_refuses_a_slot_too_many(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2)
    for name in ("Ada", "Bob"):
        take(store, parts, name)
    for statement in (
        "UPDATE task SET slot = 0",  # two in one slot
        "UPDATE task SET slot = 2 WHERE slot = 1",  # beyond the number
        "UPDATE task SET slots = 3, slot = 2 WHERE slot = 1",  # a number that the item has not
        "UPDATE task SET state = 'skipped' WHERE slot = 1",  # a slot for nothing
    ):
        with pytest.raises(StorageError, match="refused a row"), store.database.writing() as session:
            session.execute(text(statement))


def test_people_who_ask_at_the_same_instant_get_different_items(store: Store, url: str) -> None:
    parts = project(store, 10, annotators_per_item=1)
    items: list[str] = []
    start = threading.Barrier(4)

    def ask(name: str) -> None:
        with Store(url) as another:
            start.wait()
            while (task := another.queue.next_item(parts.id, name, "generation")) is not None:
                items.append(task.item)
                another.submissions.submit(task.item, name, "generation", work("x"), seconds=0)

    at_once(ask, [f"p{n}" for n in range(4)])
    assert len(items) == len(set(items)) == 10


def test_an_expired_lease_is_free_and_loses_no_draft(store: Store, clock: Clock) -> None:
    parts = project(store, 1, lease_minutes=10)
    item = take(store, parts, "Ada").item
    assert store.drafts.save_draft(item, "Ada", "generation", {"text": "half"}).version == 1
    clock.pass_(minutes=11)
    assert take(store, parts, "Bob").item == item
    mine = task_of(store, item, "Ada")
    assert (mine.state, mine.slot) == ("expired", None)
    late = store.drafts.save_draft(item, "Ada", "generation", {"text": "more"}, expected_version=1)
    assert (late.over, late.version, late.body) == (True, 2, {"text": "more"})
    assert store.queue.next_item(parts.id, "Ada", "generation") is None
    # Bob's lease runs out too: the next to ask has it, and Ada's draft is still there
    clock.pass_(minutes=11)
    assert take(store, parts, "Ada").item == item
    draft = store.drafts.find_draft(item, "Ada", "generation")
    assert (draft.body, draft.over) == ({"text": "more"}, False)


def test_saving_keeps_the_lease_and_an_expired_one_is_resumed_where_it_is_free(store: Store, clock: Clock) -> None:
    parts = project(store, 1, lease_minutes=10)
    item = take(store, parts, "Ada").item
    for _ in range(3):
        clock.pass_(minutes=8)
        store.drafts.save_draft(item, "Ada", "generation", {"t": 1})
    assert store.queue.next_item(parts.id, "Bob", "generation") is None
    clock.pass_(minutes=60)
    assert store.submissions.submit(item, "Ada", "generation", work("x"), seconds=1).counted  # nobody wanted it


def counting(store: Store) -> list[str]:
    """Whose annotation of the only question counts."""
    with store.database.reading() as session:
        (question,) = session.scalars(select(tables.Question.id))
        return [one.annotator for one in annotated(session, [question], submitted(session, [question]))]


def test_late_work_is_kept_over_the_number_and_counts_when_a_slot_is_free(store: Store, clock: Clock) -> None:
    parts = project(store, 1, lease_minutes=10)
    item = take(store, parts, "Ada").item
    clock.pass_(minutes=11)
    take(store, parts, "Bob")
    late = store.submissions.submit(item, "Ada", "generation", work("late"), seconds=5)
    assert (late.counted, late.current) == (False, True)
    assert store.items.progress(parts.id, "Mia")["generation"].over == 1
    assert [t.annotator for t in store.queue.tasks(parts.id, "Mia") if t.over] == ["Ada"]
    assert counting(store) == []  # what does not count is not exported as if it did
    store.queue.skip_item(item, "Bob", "generation", "not my field")
    assert [s.counted for s in store.submissions.submissions(parts.id, "Mia")] == [True]
    assert states(store, parts) == ["done"]
    assert counting(store) == ["Ada"]


def test_surplus_work_that_was_returned_takes_a_slot_that_became_free(store: Store, clock: Clock) -> None:
    parts = project(store, 1, lease_minutes=10)
    item = take(store, parts, "Ada").item
    clock.pass_(minutes=11)
    take(store, parts, "Bob")
    store.submissions.submit(item, "Ada", "generation", work("late"), seconds=5)
    store.returns.return_item(item, "Ada", "generation", "more", by="Mia")
    store.queue.skip_item(item, "Bob", "generation", "not my field")
    assert store.submissions.submit(item, "Ada", "generation", work("late", "more"), seconds=5).counted
    assert states(store, parts) == ["done"]


def test_release_skip_and_their_way_back(store: Store) -> None:
    parts = project(store, 2)
    item = take(store, parts, "Ada").item
    store.drafts.save_draft(item, "Ada", "generation", {"t": 1})
    released = store.queue.release_item(item, "Ada", "generation")
    assert (released.state, released.slot) == ("released", None)
    assert take(store, parts, "Ada").item != item  # what is new comes before what was given back
    assert take(store, parts, "Bob").item == item
    with pytest.raises(InputError, match="reason"):
        store.queue.skip_item(item, "Bob", "generation", "  ")
    skipped = store.queue.skip_item(item, "Bob", "generation", "unclear")
    assert (skipped.state, skipped.reason) == ("skipped", "unclear")
    assert store.queue.next_item(parts.id, "Bob", "generation") is None  # never again; the other is Ada's
    do(store, parts, "Ada", "x")
    assert take(store, parts, "Ada").item == item
    assert store.drafts.find_draft(item, "Ada", "generation").body == {"t": 1}
    assert store.returns.undo(item, "Bob", "generation").state == "expired"  # Ada has it now
    store.queue.release_item(item, "Ada", "generation")
    store.drafts.save_draft(item, "Bob", "generation", {"t": 2})  # a sign of life takes the free slot
    (again,) = store.queue.tasks(parts.id, "Bob", annotator="Bob", stage="generation")
    assert again.state == "leased"


def test_returned_work_comes_back_first_and_keeps_its_slot(store: Store) -> None:
    parts = project(store, 2)
    item = do(store, parts, "Ada", "x").item
    other = take(store, parts, "Ada").item
    back = store.returns.return_item(item, "Ada", "generation", "the film of 2021 is missing", by="Vera")
    assert (back.state, back.slot, back.reason) == ("returned", 0, "the film of 2021 is missing")
    assert states(store, parts) == ["open", "open"]
    assert store.queue.next_item(parts.id, "Bob", "generation") is None
    assert store.maintenance.counts()["annotation"] == 0
    assert store.submissions.submissions(parts.id, "Mia", item=item) == []  # it does not count any more
    again = take(store, parts, "Ada")
    assert (again.item, again.state) == (item, "returned")
    assert not store.drafts.find_draft(item, "Ada", "generation").submitted
    assert store.submissions.submit(item, "Ada", "generation", work("x", "y"), seconds=3, expected_version=1).version == 2
    assert take(store, parts, "Ada").item == other
    assert states(store, parts) == ["done", "open"]
    with pytest.raises(InputError, match="nothing here"):
        store.returns.return_item(other, "Ada", "generation", "x", by="Vera")


def test_undo_is_a_new_version_equal_to_the_earlier_one(store: Store) -> None:
    parts = project(store, 1)
    item = take(store, parts, "Ada").item
    store.drafts.save_draft(item, "Ada", "generation", {"t": 1})
    for answer in ("a", "b", "c"):
        store.submissions.submit(item, "Ada", "generation", work(answer), seconds=1, draft_body={"t": answer})
    store.returns.undo(item, "Ada", "generation")
    store.returns.undo(item, "Ada", "generation")
    history = store.submissions.submission_history(item, "Ada", "generation", "Ada")
    assert [s.content for s in history] == [work(answer) for answer in ("a", "b", "c", "b", "a")]
    assert [s.restores for s in history] == [None, None, None, 2, 1]
    assert [s.current for s in history] == [False] * 4 + [True]
    assert not store.drafts.find_draft(item, "Ada", "generation").submitted  # it is the last one still
    reopened = store.returns.undo(item, "Ada", "generation")
    assert (reopened.state, reopened.slot) == ("leased", 0)
    draft = store.drafts.find_draft(item, "Ada", "generation")
    assert (draft.submitted, draft.body) == (False, {"t": "c"})
    assert states(store, parts) == ["open"]
    with pytest.raises(InputError, match="nothing to undo"):
        store.returns.undo(item, "Ada", "generation")
    assert len(store.submissions.submission_history(item, "Ada", "generation", "Ada")) == 5  # nothing was lost


def test_a_random_order_is_its_seed_and_an_order_can_change(store: Store) -> None:
    def order(parts: Project) -> list[int]:
        return [i.position for i in store.items.items(parts.id, "Mia", stage="generation")]

    parts, again = (project(store, 30, name=name, order="random", seed=4) for name in ("parts", "again"))
    shuffled = order(parts)
    assert sorted(shuffled) == list(range(30)) != shuffled == order(again)
    changed = store.projects.update_project("Mia", parts.id, 1, seed=5)
    assert order(parts) != shuffled
    store.projects.update_project("Mia", parts.id, changed.version, order="file")
    assert order(parts) == list(range(30))
    with pytest.raises(ConflictError, match="changed by somebody else"):
        store.projects.update_project("Mia", parts.id, 1, name="mine")


def test_disagreement_comes_first(store: Store) -> None:
    parts = project(store, 3, annotators_per_item=2, stages=("generation", "validation"), order="disagreement")
    for answers in (("a",), ("b",), ("c", "d")):
        do(store, parts, "Ada", *answers)
    for answers in (("a",), ("x",), ("c", "y")):
        do(store, parts, "Bob", *answers)
    items = store.items.items(parts.id, "Mia", stage="validation")  # the equal ones are validated
    assert [(i.position, i.disagreement, i.state) for i in items] == [(1, 1.0, "open"), (2, 0.5, "open"), (0, 0.0, "done")]
    assert take(store, parts, "Vera", "validation").item == items[0].id


def test_the_number_of_people_can_change(store: Store) -> None:
    parts = project(store, 2)
    item = do(store, parts, "Ada", "x").item
    assert states(store, parts) == ["done", "open"]
    changed = store.projects.update_project("Mia", parts.id, 1, annotators_per_item=2)
    assert states(store, parts) == ["open", "open"]
    assert take(store, parts, "Bob").item == item
    with pytest.raises(InputError, match="held beyond 1"):
        store.projects.update_project("Mia", parts.id, changed.version, annotators_per_item=1)
    store.queue.release_item(item, "Bob", "generation")
    store.projects.update_project("Mia", parts.id, changed.version, annotators_per_item=1)
    assert states(store, parts) == ["done", "open"]


@pytest.mark.parametrize("first", ["skips", "stays away"])
def test_fewer_people_are_taken_where_no_item_has_more(store: Store, clock: Clock, first: str) -> None:
    parts = project(store, 1, annotators_per_item=2, lease_minutes=10)
    item = take(store, parts, "Ada").item
    do(store, parts, "Bob", "x")
    if first == "skips":
        store.queue.skip_item(item, "Ada", "generation", "not my field")
    else:
        clock.pass_(minutes=11)
    store.projects.update_project("Mia", parts.id, 1, annotators_per_item=1)
    assert states(store, parts) == ["done"]
    assert [s.counted for s in store.submissions.submissions(parts.id, "Mia")] == [True]


def test_another_number_of_people_and_validation(store: Store, clock: Clock) -> None:
    parts = project(store, 3, annotators_per_item=2, stages=("generation", "validation"), lease_minutes=10)
    late = take(store, parts, "Dan").item
    clock.pass_(minutes=11)
    for answer in ("x", "y"):
        do(store, parts, "Ada", answer)
        do(store, parts, "Bob", answer)
    store.submissions.submit(late, "Dan", "generation", work("z"), seconds=1)  # over the number
    validated = do(store, parts, "Ada", "x").item
    do(store, parts, "Bob", "y")
    take(store, parts, "Vera", "validation")
    validate(store, validated, "Vera", single("x"))
    changed = store.projects.update_project("Mia", parts.id, 1, annotators_per_item=3)
    assert states(store, parts) == ["done", "open", "done"]  # with Dan's, open, and as it was validated
    assert states(store, parts, "validation") == ["open", "waiting", "done"]
    assert take(store, parts, "Cleo").item not in (late, validated)
    store.queue.release_item(take(store, parts, "Cleo").item, "Cleo", "generation")
    store.returns.undo(late, "Dan", "generation")
    store.queue.release_item(late, "Dan", "generation")
    store.projects.update_project("Mia", parts.id, changed.version, annotators_per_item=2)
    assert states(store, parts) == states(store, parts, "validation") == ["done"] * 3  # those that agree need nobody


def test_closed_projects_lease_nothing_and_take_what_is_open(store: Store) -> None:
    parts = project(store, 2)
    item = take(store, parts, "Ada").item
    store.projects.update_project("Mia", parts.id, 1, state="closed")
    with pytest.raises(InputError, match="closed"):
        store.queue.next_item(parts.id, "Bob", "generation")
    assert store.submissions.submit(item, "Ada", "generation", work("x"), seconds=1).counted


def test_validated_items_stay_as_they_are(store: Store) -> None:
    parts = project(store, 1, annotators_per_item=2, stages=("generation", "validation"))
    item = do(store, parts, "Ada", "x").item
    assert store.queue.next_item(parts.id, "Vera", "validation") is None
    do(store, parts, "Bob", "y")
    assert take(store, parts, "Vera", "validation").item == item
    validate(store, item, "Vera", multiple("x", "y"))
    with pytest.raises(InputError, match="validated already"):
        store.returns.undo(item, "Ada", "generation")
    with pytest.raises(InputError, match="validated already"):
        store.submissions.submit(item, "Ada", "generation", work("z"), seconds=1)
    store.returns.return_item(item, "Vera", "validation", "too many", by="Mia")
    assert store.returns.undo(item, "Ada", "generation").state == "leased"
    assert states(store, parts, "validation") == ["waiting"]


def test_what_is_not_there_is_refused(store: Store) -> None:
    parts = project(store, 1)
    item = store.items.items(parts.id, "Mia", stage="generation")[0].id
    refused: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (NotFoundError, "no project", lambda: store.queue.next_item("nope", "Ada", "generation")),
        (NotFoundError, "no item", lambda: store.queue.claim_item("nope", "Ada", "generation")),
        (InputError, "no stage judging", lambda: store.queue.next_item(parts.id, "Ada", "judging")),
        (InputError, "stage", lambda: store.queue.next_item(parts.id, "Ada", "nonsense")),
        (InputError, "open the item first", lambda: store.queue.release_item(item, "Ada", "generation")),
        (InputError, "open the item first", lambda: store.returns.undo(item, "Ada", "generation")),
        (InputError, "no person's name", lambda: store.queue.next_item(parts.id, "automatic validation", "generation")),
        (InputError, "limit", lambda: store.queue.tasks(parts.id, "Mia", limit=0)),
    ]
    for error, words, call in refused:
        with pytest.raises(error, match=words):
            call()
    assert task_of(store, item, "Ada") is None


def test_an_item_without_a_prediction_is_not_leased_for_judging(store: Store) -> None:
    parts = project(store, 1, stages=("judging",), systems=("ambigprompt",))
    (item,) = store.items.items(parts.id, "Mia", stage="judging")
    with pytest.raises(InputError, match="no prediction to judge yet"):
        store.queue.claim_item(item.id, "Ada", "judging")
