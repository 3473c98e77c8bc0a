"""Turns a result on Explore into an item of a project: the question, with its corrected answers as suggestions."""

from __future__ import annotations

import streamlit as st

from pages.explore.corrections import PredictionCorrections
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.markup import escape, full_label


def draw(saved: str, prefix: str, corrections: PredictionCorrections, side: str = "") -> None:
    """Draws the form for those who may manage projects, once the prediction is stored.  `saved`: its id.  `prefix`: of its
    keys.  `side`: which of two results it is."""
    store = shared.store()
    if not saved or not store.may("manage projects"):
        return
    with st.popover(full_label("Add to project", side), icon=":material/playlist_add:", key=f"{prefix}.project.open"):
        projects = {p.id: p.name for p in store.projects.projects("open", limit=200)}
        if not projects:
            st.caption("There is no open project yet.")
            st.page_link("pages/manage/page.py", label="Go to Manage", icon=":material/folder_managed:")
            return
        key = f"{prefix}.project"
        st.selectbox("Project", list(projects), format_func=projects.__getitem__, key=key)
        struck, added = corrections.struck, corrections.added
        without = f", without the {len(struck)} struck out" if struck else ""
        extra = f", with the {len(added)} added: {escape('; '.join(added))}" if added else ""
        st.caption(f"The question becomes an item with these answers as suggestions{without}{extra}.")
        st.button(
            full_label("Add", f"to the project {side}".strip()),
            key=f"{prefix}.project.add",
            on_click=_add,
            args=(saved, key, corrections),
        )


@reported
def _add(saved: str, key: str, corrections: PredictionCorrections) -> None:
    project = st.session_state[key]
    store = shared.store()
    store.intake.add_prediction(shared.annotator(), project, saved, struck=corrections.struck, added=corrections.added)
    say(f"Added to the project {store.projects.get_project(project).name}.")
