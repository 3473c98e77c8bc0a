"""Manage: projects with their questions, guidelines, people and progress."""

from __future__ import annotations

import streamlit as st

from pages.manage import guidelines, items, new_project, people, progress
from pages.manage import settings as project_settings
from pages.manage.progress import SECTION
from pages.quality import snapshots
from pages.session import shared
from storage.exchange.filters import Filters

SECTIONS = ("Items", "Guidelines", "Suggestions", "Settings", "People", "Export", "Activity")


def main() -> None:
    st.header("Manage", anchor=False)
    user, store = shared.annotator(), shared.store()
    store.people.require(user, "manager")
    projects = {p.id: p for p in store.projects.projects(limit=200)}
    new_project.draw(user, is_first=not projects)
    if not projects:
        st.caption("No project yet. You can already manage people.")
        section = st.segmented_control(
            "Section", ["People", "Activity"], default="People", required=True, key="manage.section.0"
        )
        people.people(user) if section == "People" else people.activity(None, user)
        return
    names = {i: p.name + ("" if p.state == "open" else " (closed)") for i, p in projects.items()}
    project_id = st.selectbox(
        "Project", list(projects), format_func=names.__getitem__, key="manage.project", persist_state="session"
    )
    project = projects[project_id]
    progress.draw(project, user)
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
            items.draw(project, user)
        case "Guidelines":
            guidelines.draw(project, user)
        case "Suggestions":
            project_settings.suggestions(project, user)
        case "Settings":
            project_settings.settings(project, user)
        case "People":
            people.people(user)
        case "Export":
            snapshots.draw(Filters(project=project.id))
        case _:
            everywhere = st.toggle("All projects", key="manage.log.all")
            people.activity(None if everywhere else project, user)


main()
