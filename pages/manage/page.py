"""Manage: projects with their questions, guidelines, people and progress."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.manage import guidelines, items, new_project, people, progress
from pages.manage import settings as project_settings
from pages.manage.progress import SECTION
from pages.session import shared, snapshots
from storage.exchange.filters import Filters
from storage.records.projects import Project


def _activity(project: Project, user: str) -> None:
    everywhere = st.toggle("All projects", key="manage.log.all")
    people.activity(None if everywhere else project, user)


SECTIONS: dict[str, Callable[[Project, str], None]] = {
    "Items": items.draw,
    "Guidelines": guidelines.draw,
    "Suggestions": project_settings.suggestions,
    "Settings": project_settings.settings,
    "People": lambda project, user: people.people(user),
    "Export": lambda project, user: snapshots.draw(Filters(project=project.id)),
    "Activity": _activity,
}


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
    if (linked := st.query_params.pop("project", "")) in projects:  # a notice's link
        st.session_state.update({"manage.project": linked, SECTION: "Items"})
    names = {i: p.name + ("" if p.state == "open" else " (closed)") for i, p in projects.items()}
    project_id = st.selectbox(
        "Project", list(projects), format_func=names.__getitem__, key="manage.project", persist_state="session"
    )
    project = projects[project_id]
    progress.draw(project, user)
    section = st.segmented_control(
        "Section",
        list(SECTIONS),
        default="Items",
        required=True,
        key=SECTION,
        label_visibility="collapsed",
        persist_state="session",
    )
    SECTIONS[section](project, user)


main()
