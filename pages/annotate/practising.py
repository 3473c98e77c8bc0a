"""The practice project: start, leave and remove it, and feedback on practice work.  None of it enters exports or figures."""

from __future__ import annotations

import streamlit as st

from pages.annotate import state
from pages.session import place, shared
from pages.session.actions import action
from storage.shipped import beside, practice


@action("annotate")
def start() -> None:
    """Callback: opens the practice project, and creates it the first time."""
    beside.ensure_database(place.practice_file(), practice.practice)
    leave()
    st.query_params[place.ADDRESS] = place.ON


def leave() -> None:
    """Callback: back to the other projects; the practice work is kept."""
    state.close()
    for name in (place.ADDRESS, "project", "stage", "item"):
        st.query_params.pop(name, None)


@action("annotate")
def remove() -> None:
    """Callback: removes this person's practice project and all work in it, and nothing else."""
    leave()
    shared.drop_beside(file := place.practice_file())
    beside.remove_database(file)


def offer() -> None:
    """The button that starts or continues practising."""
    has_started = place.practice_file().is_file()
    st.button(
        "Continue practising" if has_started else "Start the practice project",
        key="annotate.practice.start",
        icon=":material/school:",
        type="tertiary" if has_started else "primary",
        on_click=start,
    )


def bar() -> None:
    """Above the practice project."""
    with st.container(border=True):
        st.markdown(
            ":orange-badge[:material/school: Practice] Twelve starter questions. After each one you see how you compare with the "
            "reference. The other annotators are invented. Nothing here enters exports or figures."
        )
        with st.container(horizontal=True):
            st.button("Leave the practice project", key="annotate.practice.leave", icon=":material/logout:", on_click=leave)
            st.button("Remove it", key="annotate.practice.remove", icon=":material/delete:", on_click=remove)
