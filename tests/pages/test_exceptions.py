"""An exception of a page, a fragment or a callback is reported in one sentence, and never by Streamlit's own box."""

from __future__ import annotations

from typing import Any, NoReturn

import people
import pytest
import streamlit as st
from annotate_helpers import click, make_project, write
from page_helpers import Open, button, texts
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from pages.session import actions, shared
from pages.session.shared import PAGES
from storage.store import Store

pytestmark = pytest.mark.usefixtures("corpus", "light")


def fail(*args: Any, **kw: Any) -> NoReturn:
    raise ZeroDivisionError("nobody expected this")


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest with the handler that the served app has."""
    begin = ScriptRunner.__init__

    def as_served(self: ScriptRunner, *args: Any, **kw: Any) -> None:
        begin(self, *args, **{**kw, "on_script_error": actions.show_uncaught})

    monkeypatch.setattr(ScriptRunner, "__init__", as_served)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_raises(page: str, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    run = StreamlitPage.run

    def without_store(self: StreamlitPage) -> None:  # what every page asks for; the frame around it has it
        with monkeypatch.context() as patch:
            patch.setattr(shared, "store", fail)
            run(self)

    monkeypatch.setattr(StreamlitPage, "run", without_store)
    app = open_app(page)
    assert not app.exception
    assert [error.value for error in app.error if "ZeroDivisionError" in error.value]
    assert any("What's new" in b.label for b in app.button)  # the frame is drawn


@pytest.mark.parametrize("page", PAGES)
def test_a_callback_that_raises(page: str, open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = st.button
    with monkeypatch.context() as patch:
        patch.setattr(st, "button", lambda *args, **kw: draw(*args, **{**kw, "on_click": fail, "args": ()}))
        app = open_app(page)
    app.button[-1].click().run()
    assert not app.exception
    assert [error.value for error in app.error if "ZeroDivisionError" in error.value]
    button(app, "Continue").click().run()
    assert not app.exception
    assert "ZeroDivisionError" not in texts(app)
    assert app.header


def test_somebody_who_is_deactivated_while_typing(open_app: Open, store: Store) -> None:
    make_project(store)
    people.add(store, people.manager(store), "Ann", "annotator")
    app = open_app("annotate", store.people.sign_in("Ann", people.PASSWORD))
    click(app, "kind", "single")
    store.people.set_active("Mia", "Ann", False)
    write(app, "Natalie Wood", "answers", 0)
    assert not app.exception
    assert "deactivated" in app.error[0].value
    assert "Mia" in app.error[0].value  # whom to ask
    store.people.set_active("Mia", "Ann", True)
    people.sign_in(app, "Ann")
    assert "Natalie Wood" in [field.value for field in app.switch_page("pages/annotate/page.py").run().text_input]
