"""Messages of Streamlit's protocol that no browser sends: each widget of each page gets values of every kind, pressed buttons among them.
The page is drawn, with the widget's default or a refusal, and nothing raises."""

from __future__ import annotations

import logging
from collections.abc import Callable

import people
import pytest
from annotate_helpers import QUESTION, make_project
from page_helpers import TIMEOUT, Open
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.session_state import WStates
from streamlit.testing.v1 import AppTest

from pages.server import server
from pages.session import shared
from storage.store import Store


def array(name: str, *values: object) -> Callable[[WidgetState], None]:
    return lambda state: getattr(state, name).data.extend(values)


def single(name: str, value: object) -> Callable[[WidgetState], None]:
    return lambda state: setattr(state, name, value)


def file(state: WidgetState) -> None:
    state.file_uploader_state_value.uploaded_file_info.add(file_id="none", name="../x", size=2**60)


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
    for name in ("__getitem__", "set_widget_from_proto"):
        monkeypatch.setattr(WStates, name, getattr(WStates, name))
    server.keep_to_values()


def forged(app: AppTest, value: Callable[[WidgetState], None]) -> WidgetStates:
    """All widgets of the page with the same value."""
    states = WidgetStates()
    for widget in app._tree.get_widget_states().widgets:
        value(states.widgets.add(id=widget.id))
    return states


def every_widget() -> None:
    """The script of an app."""
    from datetime import date

    import streamlit as st

    st.text_input("a", "x", max_chars=5).strip()
    st.text_area("b").strip()
    range(st.number_input("c", 0, 10))
    abs(st.number_input("d", 0.0, 1.0))
    assert (st.date_input("e", "2026-02-01") or date.today()).isoformat()
    {"x": 1, "y": 2}[st.selectbox("f", ["x", "y"])]
    {"x": 1, "y": 2}[st.radio("g", ["x", "y"])]
    [{"x": 1, "y": 2}[option] for option in st.multiselect("h", ["x", "y"])]
    {"x": 1, "y": 2, None: 3}[st.segmented_control("i", ["x", "y"])]
    [{"x": 1, "y": 2}[option] for option in st.pills("j", ["x", "y"], selection_mode="multi")]
    range(st.slider("k", 0, 10))
    range(st.checkbox("l") + st.toggle("m") + st.button("n"))
    st.dataframe([{"x": 1}], on_select="rerun", key="o")["selection"]["rows"]
    assert st.file_uploader("p") is None
    range(st.pagination(7))


def run_without_errors(app: AppTest, caplog: pytest.LogCaptureFixture, name: str) -> None:
    caplog.clear()
    app._run(forged(app, VALUES[name]))
    assert not app.exception, name
    assert not [r for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR], name


def test_no_kind_of_widget_raises(caplog: pytest.LogCaptureFixture) -> None:
    app = AppTest.from_function(every_widget, default_timeout=TIMEOUT).run()
    assert not app.exception
    for name in VALUES:
        run_without_errors(app, caplog, name)


@pytest.mark.parametrize("page", shared.PAGES)
def test_no_page_raises(
    open_app: Open, corpus: str, store: Store, light: None, caplog: pytest.LogCaptureFixture, page: str
) -> None:
    make_project(store, people.anyone(store), questions=(QUESTION,), thresholds={"must_read": 0})
    app = open_app(page)
    drawn = len(app._tree.get_widget_states().widgets)
    assert drawn
    for name in ("pressed", "large", "text", "no date", "options", "no dates", "selection", "trigger"):
        run_without_errors(app, caplog, name)
        app = open_app(page) if len(app._tree.get_widget_states().widgets) < drawn else app


def test_a_whole_number_is_taken_as_a_browser_sends_it() -> None:
    """It was dropped, so a project got one person an item whatever a manager chose."""

    def script() -> None:
        import streamlit as st

        st.number_input("people", 1, 100, key="n")

    app = AppTest.from_function(script, default_timeout=TIMEOUT).run()
    app._run(forged(app, single("int_value", 2)))
    assert app.number_input(key="n").value == 2
