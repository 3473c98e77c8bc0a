"""The app with AMBISCOPE_ENGINE_URL: the same pages, with nothing loaded here; a service that fails is one clear message on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from answering_service import HOLD, Running, running, small_settings
from page_fixtures import fresh_process, open_app, settings, store
from page_helpers import ANSWERS, ask, button, texts
from serving import until
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.session import libraries
from storage.store import Store

__all__ = ["fresh_process", "open_app", "settings", "store"]
Open = Callable[..., AppTest]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(small_settings(tmp_path_factory.mktemp("app"), serve_key="a-key")) as made:
        yield made


@pytest.fixture
def front(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app asks the service, and loads nothing itself."""
    monkeypatch.setenv("AMBISCOPE_ENGINE_URL", service.address)
    monkeypatch.setenv("AMBISCOPE_ENGINE_KEY", "a-key")
    monkeypatch.setenv("AMBISCOPE_ENGINE_TIMEOUT", "60")
    monkeypatch.setattr(libraries, "load", lambda: pytest.fail("the app loaded what only models need"))


def test_a_question_is_answered_drawn_and_saved(front: None, open_app: Open, store: Store, settings: Settings) -> None:
    app = ask(open_app())
    assert not app.exception
    assert not app.error
    shown = texts(app)
    assert all(answer in shown for answer in ANSWERS)
    (row,) = store.predictions.recent_predictions(5)
    assert (row.system, row.corpus) == ("scripted", "small")
    stored = store.predictions.get_prediction(row.id).prediction
    assert stored.system.corpus_digest
    assert [a.text for a in stored.answers] == list(ANSWERS)
    assert not settings.corpora_dir.exists()


def test_a_run_is_stopped_there_when_nobody_looks(
    front: None, service: Running, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker notices that the tab was closed, and its request ends."""
    from core import types as t
    from pages.explore import runner
    from pages.session import shared

    open_app()
    monkeypatch.setattr(runner, "ABANDONED_SECONDS", 0.5)
    service.engine.release.clear()
    question = f"{HOLD} and close the tab"
    run = runner.QuestionRun(shared._engine(), runner.Plan(t.Question(question), "scripted", "small")).start()
    until(lambda: question in service.engine.cancelled)
    assert run.wait(60)
    assert run.error is None
    assert isinstance(run.events[-1], t.Finished)


def test_corpora_are_looked_into_and_not_changed(front: None, service: Running, open_app: Open) -> None:
    app = open_app("corpora")
    assert not app.exception
    assert f"asks the service at {service.address}. Build and delete corpora" in texts(app)
    assert [s for s in app.subheader if s.value == "Add a corpus"] == []
    assert "corpora.typed.small" not in [field.key for field in app.text_input]
    app.text_input(key="corpora.query").set_value("dark volcanic rock")
    button(app, "Search").click().run()
    assert not app.exception
    assert "Basalt" in texts(app)


def test_training_says_where_it_is_done(front: None, service: Running, open_app: Open) -> None:
    app = open_app("quality")
    assert not app.exception
    assert "train models, on its machine" in texts(app)
    assert "Train and evaluate" not in [b.label for b in app.button]


def test_a_wrong_key_is_told(front: None, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_ENGINE_KEY", "another")
    app = open_app()
    assert not app.exception
    assert any("refuses the key" in error.value for error in app.error)


def test_a_service_that_is_away_is_told(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMBISCOPE_ENGINE_URL", "http://127.0.0.1:9")
    app = open_app()
    assert not app.exception
    assert any("cannot be reached" in error.value for error in app.error)
