from __future__ import annotations

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from pages.explore import options

    st.session_state["got"] = options._choices(st.session_state.get("system", "ambiscope"), "explore.first", options._Fields())


def test_a_choice_is_passed_on_when_it_is_not_the_default() -> None:
    at = AppTest.from_function(page).run()
    (box,) = at.selectbox
    assert (box.label, box.value) == ("Loop", "fast")
    assert at.session_state["got"] == {}
    box.set_value("exact").run()
    assert at.session_state["got"] == {"loop": "exact"}
    at.session_state["system"] = "fid"
    at.run()
    assert not at.selectbox
    assert at.session_state["got"] == {}
