"""Fixtures of page tests: the real app on an empty home, with the scripted system over a small corpus; no weights."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from annotation_samples import hash_quickly
from page_helpers import ANSWERS, QUESTION, ROWS, TIMEOUT, tsv
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from core.engine import Engine
from core.retrieval.library import CorpusLibrary
from core.settings import ROOT, Settings
from core.systems import scripted
from pages.session import shared
from storage.access.sign_ins import Visitor
from storage.schema import engine
from storage.store import Store


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No cached engine or store of another test, settings of this one, no waiting for the disk or a password, no model warmed up."""
    values = {"SYSTEM": "scripted", "ENCODER": "hashing", "CORPUS": "small", "DEVICE": "cpu", "HOME": str(tmp_path / "home")}
    for name, value in values.items():
        monkeypatch.setenv(f"AMBISCOPE_{name}", value)
    monkeypatch.setattr(engine, "SYNCHRONOUS", "OFF")
    hash_quickly(monkeypatch)
    # AppTest reads the metadata of all installed packages for each app, looking for components
    monkeypatch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)
    monkeypatch.setattr(ContextProxy, "cookies", property(lambda self: {}))  # AppTest's are a mock
    monkeypatch.setattr("pages.session.shared.warm", lambda: threading.current_thread())
    build = scripted.build
    table = {QUESTION: list(ANSWERS)}
    monkeypatch.setattr(scripted, "build", lambda *args: build(*args[:3], dataclasses.replace(args[3], table=table)))
    # AppTest forgets between two runs that the app calls st.navigation, and then runs the page without the app
    begin = PagesManager.__init__

    def as_with_navigation(self: PagesManager, *args: Any, **kw: Any) -> None:
        begin(self, *args, **kw)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", as_with_navigation)
    st.cache_resource.clear()
    st.cache_data.clear()
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def settings() -> Settings:
    return Settings.from_env()


@pytest.fixture
def corpus(settings: Settings, tmp_path: Path) -> str:
    path = tmp_path / "small.tsv"
    path.write_text(tsv(ROWS), encoding="utf-8")
    CorpusLibrary(settings).create("small", [path])
    return "small"


@pytest.fixture
def open_app() -> Callable[..., AppTest]:
    """open_app(page="explore", visitor=None, **query): the app as a browser tab that was just opened, in which this visitor has signed in."""

    def open_it(page: str = "explore", visitor: Visitor | None = None, **query: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "streamlit_app.py"), default_timeout=TIMEOUT)
        for name, value in query.items():
            app.query_params[name] = value
        if visitor is not None:
            app.session_state[shared.VISITOR_KEY], app.session_state[shared.MADE_IN] = visitor, ("", "")
        app.run()
        return app if page == "explore" else app.switch_page(f"pages/{page}/page.py").run()

    return open_it


@pytest.fixture
def app(corpus: str, open_app: Callable[..., AppTest]) -> AppTest:
    return open_app()


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A second connection, as another process would have."""
    with Store(settings.url) as opened:
        yield opened


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """An engine without the libraries that only models need."""
    light_engine = Engine(settings)
    for name in ("engine", "light_engine"):
        monkeypatch.setattr(f"pages.session.shared.{name}", lambda: light_engine)
    monkeypatch.setattr("pages.session.shared.systems", lambda: [])


@pytest.fixture
def annotate(corpus: str, open_app: Callable[..., AppTest]) -> Callable[..., AppTest]:
    """annotate(who="me", **query): the annotate page as somebody opens it."""

    def open_it(who: str = "me", **query: str) -> AppTest:
        app = open_app("explore")
        app.text_input(key="annotator").set_value(who).run()
        for name, value in query.items():
            app.query_params[name] = value
        return app.switch_page("pages/annotate/page.py").run()

    return open_it
