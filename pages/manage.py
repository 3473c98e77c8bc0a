"""Manage: projects with their questions, guidelines, people and progress."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages import _manage_guidelines as guidelines
from pages import _manage_import as importing
from pages import _manage_items as items
from pages import _manage_new as new
from pages import _manage_people as people
from pages import _manage_progress as progress
from pages import _manage_projects as projects
from pages import _shared
from pages._manage_items import ERROR, SAID
from pages._manage_progress import SECTION
from pages._markup import plain

SECTIONS = ("Items", "Guidelines", "Suggestions", "Settings", "People", "Activity")


def main() -> None:
    st.header("Manage", anchor=False)
    who, store = _shared.annotator(), _shared.store()
    store.require(who, "manager")
    with st.container():  # always there: what is below keeps its place, and with it its state
        if said := st.session_state.pop(SAID, None):
            st.success(plain(said), icon=":material/check:")
        if error := st.session_state.pop(ERROR, None):
            importing.explain(error)
    found = {p.id: p for p in store.projects(limit=200)}
    new.draw(who, first=not found)
    if not found:
        st.caption("People and the log can be managed before there is a project:")
        section = st.segmented_control(
            "Section", ["People", "Activity"], default="People", required=True, key="manage.section.0"
        )
        people.people(who) if section == "People" else people.activity(None, who)
        return
    names = {i: p.name + ("" if p.state == "open" else " (closed)") for i, p in found.items()}
    chosen = st.selectbox("Project", list(found), format_func=names.__getitem__, key="manage.project", persist_state="session")
    project = found[chosen]
    progress.draw(project, who)
    section = st.segmented_control(
        "Section",
        SECTIONS,
        default=SECTIONS[0],
        required=True,
        key=SECTION,
        label_visibility="collapsed",
        persist_state="session",
    )
    match section:
        case "Items":
            items.draw(project, who)
            people.admit(project, who)
        case "Guidelines":
            guidelines.draw(project, who)
        case "Suggestions":
            projects.suggestions(project, who)
        case "Settings":
            projects.settings(project, who)
        case "People":
            people.people(who)
        case _:
            everywhere = st.toggle("Of all projects", key="manage.log.all")
            people.activity(None if everywhere else project, who)


_shared.enter("manage")
try:
    main()
except AmbiscopeError as error:
    _shared.show_error(error)
