"""The first page is drawn while the libraries are still being imported: nothing that it draws may need them."""

from __future__ import annotations

import subprocess
import sys
import threading
from unittest.mock import Mock

import pytest
from page_helpers import QUESTION, TIMEOUT, Open

from core import types as t
from core.engine import Engine
from core.settings import ROOT, Settings
from pages.explore.runner import Plan, QuestionRun
from pages.session import libraries

DRAWN = """
import sys
from core.engine import Engine, statuses
from core.settings import Settings
from pages.explore import live, options
settings = Settings.from_env()
assert any(s.ready for s in statuses(settings))
Engine(settings).library.list()
print(sorted({"torch", "transformers", "faiss", "sklearn"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_what_the_first_page_draws_imports_no_model() -> None:
    done = subprocess.run([sys.executable, "-c", DRAWN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_run_waits_for_the_libraries_in_its_worker(settings: Settings, corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for, loaded = threading.Event(), threading.Event()

    def load() -> None:
        asked_for.set()
        loaded.wait(TIMEOUT)

    monkeypatch.setattr(libraries, "load", load)
    run = QuestionRun(Engine(settings), Plan(t.Question(QUESTION), "scripted", corpus)).start()
    assert asked_for.wait(TIMEOUT)
    assert (run.done, run.stage, run.events) == (False, "loading the libraries", [])
    loaded.set()
    assert run.wait(TIMEOUT)
    assert run.error is None
    assert isinstance(run.events[-1], t.Finished)


def test_the_page_is_there_before_the_libraries(corpus: str, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "load", Mock(side_effect=AssertionError("the page waited for the libraries")))
    monkeypatch.setattr(libraries, "loaded", lambda: False)
    app = open_app()
    assert not app.exception
    assert app.text_input(key="explore.question")
    assert app.selectbox(key="explore.corpus").value == "small"


def test_libraries_are_loaded_once() -> None:
    usual = sys.getswitchinterval()
    libraries.load()
    assert libraries.loaded()
    assert sys.getswitchinterval() == usual
    assert "core.models.span.answerer" in sys.modules
