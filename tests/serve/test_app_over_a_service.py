"""The app with AMBISCOPE_ENGINE_URL: the same pages, with nothing loaded here; a service that fails is one clear message on them."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
from answering_service import Running
from page_fixtures import fresh_process, open_app, settings, store
from page_helpers import ANSWERS, ask, button, texts
from storage_samples import fill
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.session import libraries
from storage.store import Store

__all__ = ["fresh_process", "open_app", "settings", "store"]
Open = Callable[..., AppTest]
KEY = "a-key"


@pytest.fixture
def front(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app asks the service, and loads nothing itself."""
    for name, value in {"URL": service.address, "KEY": KEY, "TIMEOUT": "60"}.items():
        monkeypatch.setenv(f"AMBISCOPE_ENGINE_{name}", value)
    monkeypatch.setattr(libraries, "load", lambda: pytest.fail("the app loaded what only models need"))


def test_a_question_is_answered_drawn_and_saved(front: None, open_app: Open, store: Store, settings: Settings) -> None:
    app = ask(open_app())
    assert not app.exception
    assert not app.error
    assert all(answer in texts(app) for answer in ANSWERS)
    (row,) = store.predictions.recent_predictions(5)
    assert (row.system, row.corpus) == ("scripted", "small")
    stored = store.predictions.get_prediction(row.id).prediction
    assert stored.system.corpus_digest
    assert [a.text for a in stored.answers] == list(ANSWERS)
    assert not settings.corpora_dir.exists()


def test_corpora_are_looked_into_and_not_changed(front: None, service: Running, open_app: Open) -> None:
    app = open_app("corpora")
    assert not app.exception
    assert f"asks the service at {service.address}. Build and delete corpora" in texts(app)
    assert "Add a corpus" not in [s.value for s in app.subheader]
    assert "corpora.typed.small" not in [field.key for field in app.text_input]
    app.text_input(key="corpora.query").set_value("dark volcanic rock")
    button(app, "Search").click().run()
    assert not app.exception
    assert "Basalt" in texts(app)


def test_training_says_where_it_is_done(front: None, open_app: Open, store: Store) -> None:
    importlib.import_module("scipy.stats")  # takes a minute where the machine is busy: not within the time of the page
    fill(store)  # else the page makes its example
    app = open_app("quality")
    assert not app.exception
    assert "train models, on its machine" in texts(app)
    assert "Train and evaluate" not in [b.label for b in app.button]


def test_a_service_that_does_not_answer_is_reported(front: None, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_ENGINE_KEY", "another")
    app = open_app()
    assert not app.exception
    assert any("refuses the key" in error.value for error in app.error)
