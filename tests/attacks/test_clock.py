"""The clock of the server set back or forward: nothing is held for longer than was promised, and nothing ends before its time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import people
import pytest
from annotate_helpers import QUESTION, make_project
from annotation_samples import Clock, take, work
from streamlit.testing.v1 import AppTest

from storage.records.annotation import SignInError
from storage.store import Store

Open = Callable[..., AppTest]
BACK = {"days": 200}  # a battery that is empty, a time zone that was taken for another


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def back(clock: Clock) -> None:
    clock.pass_(**{name: -value for name, value in BACK.items()})


def test_a_lease_of_the_future_ends_when_its_minutes_are_over(store: Store, clock: Clock) -> None:
    """Somebody opens an item and leaves; the clock is set back.  Others get the item after the project's minutes, not after 200 days."""
    made = make_project(store, people.anyone(store), questions=(QUESTION,), lease_minutes=30.0, thresholds={"must_read": 0})
    held = take(store, made, "Ada")
    back(clock)
    assert store.queue.next_item(made.id, "Ben", "generation") is None, "the lease is not over yet"
    clock.pass_(minutes=31)
    found = store.queue.next_item(made.id, "Ben", "generation")
    assert found is not None
    assert found.item == held.item


def test_a_draft_outlives_the_lease_of_the_future(store: Store, clock: Clock) -> None:
    made = make_project(store, people.anyone(store), questions=(QUESTION,), thresholds={"must_read": 0})
    held = take(store, made, "Ada")
    store.drafts.save_draft(held.item, "Ada", "generation", {"text": "half"})
    back(clock)
    again = store.queue.next_item(made.id, "Ada", "generation")
    assert again is not None
    assert again.item == held.item
    draft = store.drafts.find_draft(held.item, "Ada", "generation")
    assert draft is not None
    assert draft.body == {"text": "half"}
    saved = store.drafts.save_draft(held.item, "Ada", "generation", {"text": "more"}, draft.version)
    assert saved.version == draft.version + 1
    store.submissions.submit(held.item, "Ada", "generation", work("Natalie Wood"), seconds=1)
    assert store.items.progress(made.id, "me", stage="generation")["generation"].submitted == 1


def test_nothing_ends_early_when_the_clock_goes_back_a_little(store: Store, clock: Clock) -> None:
    """A time server corrects by seconds: what was held stays held."""
    made = make_project(store, people.anyone(store), questions=(QUESTION,), lease_minutes=30.0)
    take(store, made, "Ada")
    clock.pass_(seconds=-20)
    assert store.queue.next_item(made.id, "Ben", "generation") is None
    clock.pass_(minutes=29)
    assert store.queue.next_item(made.id, "Ben", "generation") is None


def test_the_wait_after_wrong_passwords_is_never_longer_than_it_says(store: Store, clock: Clock) -> None:
    people.manager(store)
    for _ in range(5):
        with pytest.raises(SignInError):
            store.people.sign_in("Mia", "wrong password")
    back(clock)
    clock.pass_(hours=1)
    assert store.people.sign_in("Mia", people.PASSWORD).name == "Mia"


def test_a_clock_that_jumps_forward_and_back_does_not_open_the_throttle_for_ever(store: Store, clock: Clock) -> None:
    people.manager(store)
    for _ in range(9):
        with pytest.raises(SignInError):
            store.people.sign_in("Mia", "wrong password")
        clock.pass_(hours=1)
    with pytest.raises(SignInError):
        store.people.sign_in("Mia", "wrong password")
    with pytest.raises(SignInError) as waiting:
        store.people.sign_in("Mia", people.PASSWORD)
    assert waiting.value.seconds


def test_the_log_keeps_the_order_in_which_things_were_done(store: Store, clock: Clock) -> None:
    me = people.anyone(store)
    made = make_project(store, me, questions=(QUESTION,))
    back(clock)
    store.projects.save_guidelines(me, made.id, "later, by an earlier clock", expected_version=0)
    newest = store.people.activity(me, limit=1)[0]
    assert "guidelines" in newest.action
    assert [g.version for g in store.projects.guideline_versions(made.id)] == [1]


def test_a_page_shows_a_day_that_is_still_to_come(open_app: Open, store: Store, clock: Clock, light: None) -> None:
    """What was stored before the clock was set back lies in the future for every page."""
    me = people.anyone(store)
    make_project(store, me, questions=(QUESTION,), thresholds={"must_read": 0})
    project = store.projects.projects()[0]
    held = take(store, project, me)
    store.submissions.submit(held.item, me, "generation", work("Natalie Wood"), seconds=1)
    store.maintenance.backup()
    store.exports.take_snapshot(store.database.path.parent / "snapshots")  # type: ignore[union-attr]
    clock.time -= timedelta(**BACK)
    app = open_app("manage")
    for page in ("annotate", "quality", "health", "evaluate", "explore", "manage"):
        app = app.switch_page(f"pages/{page}/page.py").run()
        assert not app.exception, page
        assert not [e.value for e in app.error], page
