"""A project's progress: counts by stage, and what blocks the work."""

from __future__ import annotations

import streamlit as st

from core.text import listed
from pages.manage import assignments
from pages.session import background as jobs
from pages.session import shared
from pages.ui.markup import escape
from pages.ui.stages import STAGES
from pages.ui.tables import fitted, table
from storage.records.projects import Project

SECTION = "manage.section"
UNANSWERED = "No prediction"
# usually zero: columns of zeros would push the others out of sight
RARE_COLUMNS = (UNANSWERED, "Drafts", "Sent back", "Skipped", "Extra", "Gold")


def draw(project: Project, user: str) -> None:
    """Counts by stage for all items, including those on other pages."""
    stages = shared.store().items.progress(project.id, user)
    unanswered = len(shared.store().intake.unanswered(user, project.id)) if "judging" in project.stages else 0
    if unanswered:
        _warn(project, unanswered, stages["judging"].items)
    rows = [
        {
            "Stage": STAGES[p.stage],
            "Done": round(p.submitted / p.slots, 2) if p.slots else 0.0,
            "Submitted": f"{p.submitted:,} of {p.slots:,}",
            "Items done": f"{p.done:,} of {p.items:,}",
            "Time (h)": round(p.seconds / 3600, 2),
            "Waiting": p.waiting,
            UNANSWERED: unanswered if p.stage == "judging" else 0,
            "In progress": p.leased,
            "Drafts": p.drafts,
            "Sent back": p.returned,
            "Skipped": p.skipped,
            "Extra": p.over,
            "Gold": p.gold,
        }
        for p in stages.values()
    ]
    rows = [
        {name: cell for name, cell in row.items() if name not in RARE_COLUMNS or any(r[name] for r in rows)} for row in rows
    ]
    help = {
        "Waiting": "Items waiting for the previous stage",
        "In progress": "Items that somebody has open now",
        UNANSWERED: "Items that a system must answer before they can be judged",
    }
    share = st.column_config.ProgressColumn(min_value=0.0, max_value=1.0, format="percent")
    table(rows, "Progress of the project by stage", columns=fitted(rows, help=help) | {"Done": share}, csv_name="progress")
    assignments.by_person(project, user)


def _warn(project: Project, unanswered: int, items: int) -> None:
    systems = " or ".join(escape(s) for s in project.systems)
    text = f"Run {systems} on {unanswered:,} of {listed(items, 'question')} before judging."
    if project.id in jobs.running("preannotations"):
        text = f"{unanswered:,} of {listed(items, 'question')} still to be answered by {systems}, at work now."
    st.warning(text, icon=":material/hourglass_empty:")
    if st.session_state.get(SECTION) != "Suggestions":
        go, section, icon = st.session_state.update, {SECTION: "Suggestions"}, ":material/arrow_forward:"
        st.button("Go to Suggestions", key="manage.bare.go", type="tertiary", icon=icon, on_click=go, args=(section,))
