"""The real app on an empty home: the fixtures of `page_fixtures`, and people."""

from __future__ import annotations

import people
import pytest
from page_fixtures import annotate, app, corpus, fresh_process, light, open_app, settings, store

from storage.store import Store

__all__ = ["annotate", "app", "corpus", "fresh_process", "light", "open_app", "settings", "store"]


@pytest.fixture
def ann(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ann, an annotator, has signed in; the manager is Mia."""
    people.add(store, people.manager(store), "Ann", "annotator")
    visitor = store.people.sign_in("Ann", people.PASSWORD)
    monkeypatch.setattr("pages.session.shared.visitor", lambda: visitor)
    monkeypatch.setattr("pages.session.sign_in.gate", lambda: True)
