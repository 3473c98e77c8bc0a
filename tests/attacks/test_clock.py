"""The clock of the server set back: nothing is held for longer than was promised."""

from __future__ import annotations

import people
import pytest
from annotate_helpers import QUESTION, make_project
from annotation_samples import Clock, take

from storage.records.annotation import SignInError
from storage.store import Store

BACK = -200  # days: a battery that is empty, a time zone that was taken for another


def test_a_lease_of_the_future_ends_when_its_minutes_are_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody opens an item and leaves; the clock is set back.  Others get the item after the project's minutes, not after 200 days."""
    clock, project = Clock(monkeypatch), make_project(store, people.anyone(store), questions=(QUESTION,), lease_minutes=30.0)
    leased = take(store, project, "Ada")
    clock.pass_(days=BACK)
    assert store.queue.next_item(project.id, "Ben", "generation") is None, "the lease is not over yet"
    clock.pass_(minutes=31)
    assert take(store, project, "Ben").item == leased.item


def test_the_wait_after_wrong_passwords_is_never_longer_than_it_says(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    people.manager(store)
    for _ in range(5):
        with pytest.raises(SignInError):
            store.people.sign_in("Mia", "wrong password")
    clock.pass_(days=BACK, hours=1)
    assert store.people.sign_in("Mia", people.PASSWORD).name == "Mia"
