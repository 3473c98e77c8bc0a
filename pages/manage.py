"""Manage: projects with their questions, guidelines, people and progress."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError
from pages import _manage_guidelines as guidelines
from pages import _manage_import as importing
from pages import _manage_items as items
from pages import _manage_people as people
from pages import _manage_projects as projects
from pages import _shared
from pages._annotate_about import STAGES
from pages._manage_items import ERROR, SAID
from pages._markup import plain
from storage.records_annotation import Project

SECTIONS = ("Items", "Guidelines", "Suggestions", "Settings", "People", "Activity")


def progress(project: Project, who: str) -> None:
    """Counts by stage; the numbers of SQL, not of what is on the page."""
    found = _shared.store().progress(project.id, who)
    rows = [
        {
            "stage": STAGES[p.stage],
            "done": round(p.submitted / p.slots, 2) if p.slots else 0.0,
            "submitted": f"{p.submitted:,} of {p.slots:,}",
            "items done": f"{p.done:,} of {p.items:,}",
            "hours": round(p.seconds / 3600, 2),
            "waiting": p.waiting,
            "open with somebody": p.leased,
            "drafts": p.drafts,
            "sent back": p.returned,
            "skipped": p.skipped,
            "over the number": p.over,
            "qualification": p.gold,
        }
        for p in found.values()
    ]
    # columns of zeros would push the others out of sight
    rare = [
        name
        for name in ("drafts", "sent back", "skipped", "over the number", "qualification")
        if not any(r[name] for r in rows)
    ]
    st.dataframe(
        pd.DataFrame(rows).drop(columns=rare),
        hide_index=True,
        width="stretch",
        column_config={"done": st.column_config.ProgressColumn(min_value=0.0, max_value=1.0, format="percent")},
        alt="Progress of the project by stage",
    )


def main() -> None:
    st.header("Manage", anchor=False)
    who, store = _shared.annotator(), _shared.store()
    store.require(who, "manager")
    if said := st.session_state.pop(SAID, None):
        st.success(plain(said), icon=":material/check:")
    if error := st.session_state.pop(ERROR, None):
        importing.explain(error)
    found = {p.id: p for p in store.projects(limit=200)}
    projects.create(who, expanded=not found)
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
    progress(project, who)
    section = st.segmented_control(
        "Section",
        SECTIONS,
        default="Items",
        required=True,
        key="manage.section",
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
