"""Messages of Streamlit's protocol that no browser sends: each widget of each page gets values of every kind, pressed buttons among them.
Streamlit takes the default for an option that was not offered, and ends the sender's run at a value of another type; nobody else notices."""

from __future__ import annotations

from collections.abc import Callable

import people
import pytest
from annotate_helpers import QUESTION, make_project
from page_helpers import TIMEOUT, Open
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from pages.session import shared
from storage.store import Store


def array(name: str, *values: object) -> Callable[[WidgetState], None]:
    return lambda state: getattr(state, name).data.extend(values)


def single(name: str, value: object) -> Callable[[WidgetState], None]:
    return lambda state: setattr(state, name, value)


def trigger(state: WidgetState) -> None:
    state.string_trigger_value.data = "x"


VALUES: dict[str, Callable[[WidgetState], None]] = {
    "pressed": single("trigger_value", True),
    "large": single("int_value", 2**53),
    "text": single("string_value", "\0\u202e<b>" * 50),
    "no date": single("string_value", "99999-99-99"),
    "options": array("string_array_value", "none of them", ""),
    "no dates": array("string_array_value", "2026-02-31", "x"),
    "selection": single("string_value", '{"selection": {"rows": ["x", -5, 99999], "columns": 7}}'),
    "trigger": trigger,
}


def forged(app: AppTest, value: Callable[[WidgetState], None]) -> WidgetStates:
    """All widgets of the page with the same value."""
    states = WidgetStates()
    for widget in app._tree.get_widget_states().widgets:
        value(states.widgets.add(id=widget.id))
    return states


def every_choice() -> None:
    """The script of an app."""
    import streamlit as st

    names = {"x": 1, "y": 2}
    chosen = [st.selectbox("a", names), st.radio("b", names), *st.multiselect("c", names)]
    chosen += [st.segmented_control("d", names) or "x", *st.pills("e", names, selection_mode="multi")]
    st.text(sum(names[option] for option in chosen))


@pytest.mark.parametrize("kind", ["string_value", "string_array_value"])
def test_an_option_that_was_not_offered_is_none(kind: str) -> None:
    app = AppTest.from_function(every_choice, default_timeout=TIMEOUT).run()
    states = WidgetStates()
    for widget in app._tree.get_widget_states().widgets:
        if widget.WhichOneof("value") in (kind, None):
            VALUES["text" if kind == "string_value" else "options"](states.widgets.add(id=widget.id))
    assert states.widgets
    app._run(states)
    assert not app.exception
    assert app.text[0].value == "3"


@pytest.mark.parametrize("page", shared.PAGES)
def test_a_forged_value_harms_nobody_else(open_app: Open, corpus: str, store: Store, light: None, page: str) -> None:
    """Nor does the message that its sender gets tell anything of the code."""
    make_project(store, people.anyone(store), questions=(QUESTION,), thresholds={"must_read": 0})
    for name, value in VALUES.items():
        app = open_app(page)
        assert not app.exception, name
        assert app._tree.get_widget_states().widgets
        app._run(forged(app, value))
        assert all("redacted" in error.message and not error.stack_trace for error in app.exception), name
    assert not open_app(page).exception
    assert store.maintenance.health(full=True).ok
