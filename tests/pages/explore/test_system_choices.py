from __future__ import annotations

from streamlit.testing.v1 import AppTest


def page() -> None:
    import streamlit as st

    from pages.explore import options

    st.session_state["got"] = options._choices(st.session_state.get("system", "ambiscope"), "explore.first", options._Fields())


def test_a_choice_is_passed_on_when_it_is_not_the_default() -> None:
    at = AppTest.from_function(page).run()
    added, box = at.selectbox
    assert (added.label, added.value) == ("Rescoring", "all")
    assert (box.label, box.value) == ("Loop", "exact")
    assert at.session_state["got"] == {}
    box.set_value("fast").run()
    assert at.session_state["got"] == {"loop": "fast"}
    at.session_state["system"] = "fid"
    at.run()
    assert not at.selectbox
    assert at.session_state["got"] == {}
