"""Messages of Streamlit's protocol that no browser sends: each widget of each page gets values of every kind, pressed buttons among them.
The page is drawn, with the widget's default or a refusal, and nothing raises."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from annotate_helpers import QUESTION, make_project
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.session_state import WStates
from streamlit.testing.v1 import AppTest

from pages.app import server, shared
from storage.store import Store

Open = Callable[..., AppTest]


def array(name: str, *values: object) -> Callable[[WidgetState], None]:
    return lambda state: getattr(state, name).data.extend(values)


def single(name: str, value: object) -> Callable[[WidgetState], None]:
    return lambda state: setattr(state, name, value)


def file(state: WidgetState) -> None:
    state.file_uploader_state_value.uploaded_file_info.add(file_id="none", name="../x", size=-1)


def trigger(state: WidgetState) -> None:
    state.string_trigger_value.data = "x"


VALUES: dict[str, Callable[[WidgetState], None]] = {
    "true": single("bool_value", True),
    "pressed": single("trigger_value", True),
    "large": single("int_value", 2**53),
    "negative": single("int_value", -7),
    "not a number": single("double_value", float("nan")),
    "infinite": single("double_value", float("inf")),
    "text": single("string_value", "\0\u202e<b>" * 50),
    "no date": single("string_value", "99999-99-99"),
    "options": array("string_array_value", "none of them", ""),
    "no dates": array("string_array_value", "2026-02-31", "x"),
    "no option": array("string_array_value"),
    "numbers": array("double_array_value", float("inf"), 1.0, 2.0),
    "places": array("int_array_value", -1, 2**53),
    "no JSON": single("json_value", "{"),
    "other JSON": single("json_value", '{"selection": {"rows": [99999], "cells": "x"}}'),
    "selection": single("string_value", '{"selection": {"rows": ["x", -5, 99999], "columns": 7}}'),
    "deep": single("string_value", "[" * 5000),
    "bytes": single("bytes_value", b"\xff"),
    "file": file,
    "trigger": trigger,
}


@pytest.fixture(autouse=True)
def as_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WStates, "__getitem__", WStates.__getitem__)
    server.keep_to_values()


def forged(app: AppTest, value: Callable[[WidgetState], None]) -> WidgetStates:
    """All widgets of the page with the same value."""
    made = WidgetStates()
    for widget in app._tree.get_widget_states().widgets:
        value(made.widgets.add(id=widget.id))
    return made


@pytest.mark.parametrize("page", shared.PAGES)
def test_no_page_raises(
    open_app: Open, corpus: str, store: Store, light: None, caplog: pytest.LogCaptureFixture, page: str
) -> None:
    make_project(store, "me", questions=(QUESTION,), thresholds={"must_read": 0})
    app = open_app(page)
    drawn = len(app._tree.get_widget_states().widgets)
    assert drawn
    for name, value in VALUES.items():
        caplog.clear()
        app._run(forged(app, value))
        assert not app.exception, name
        assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR], name
        app = open_app(page) if len(app._tree.get_widget_states().widgets) < drawn else app


def test_a_value_of_another_kind_is_the_default(open_app: Open, corpus: str, light: None) -> None:
    app = open_app("explore")
    name = app.text_input(key="annotator").value
    for value in ("true", "options", "no JSON", "bytes", "file"):
        app._run(forged(app, VALUES[value]))
        assert app.text_input(key="annotator").value == name
