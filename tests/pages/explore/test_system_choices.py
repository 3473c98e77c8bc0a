from __future__ import annotations

from page_helpers import TIMEOUT
from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from pages.explore import options

    system = st.session_state.get("system", "ambiscope")
    st.session_state["choices"] = options._choices(system, "explore.first", options._Fields())


def test_a_choice_is_passed_on_when_it_is_not_the_default() -> None:
    app = AppTest.from_function(page, default_timeout=TIMEOUT).run()
    (box,) = app.selectbox
    assert (box.label, box.value, app.session_state["choices"]) == ("Loop", "fast", {})
    box.set_value("exact").run()
    assert app.session_state["choices"] == {"loop": "exact"}
    app.session_state["system"] = "fid"
    app.run()
    assert not app.selectbox
    assert app.session_state["choices"] == {}
