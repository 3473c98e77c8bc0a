"""Assigned items, and the progress of each person."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import streamlit as st

from core.errors import InputError
from pages.annotate.stage_info import STAGES
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.markup import escape, full_label
from pages.ui.tables import fitted, table
from storage.records.enumerations import WorkStage
from storage.records.projects import Project

EACH, SHARED = "Each person gets all of them", "Share them out"
MAX_NUMBERS = 5_000  # items of one assignment


def by_person(project: Project, user: str) -> None:
    """Progress by person and stage; first, the assignments of people who cannot do them."""
    rows = shared.store().assignments.progress_by_person(project.id, user)
    lost = Counter[str]()
    for row in rows:
        if not row.works and row.unfinished:
            lost[row.person] += row.unfinished
    for person, count in lost.items():
        st.warning(
            f"{escape(person)} cannot work at this stage any more (account inactive, or another role). {count:,} "
            f"item{'s' if count > 1 else ''} assigned to this person {'are' if count > 1 else 'is'} open to everybody again.",
            icon=":material/person_off:",
        )
        st.button(
            full_label("Remove these assignments", f"of {person}"),
            key=f"manage.team.lost.{person}",
            on_click=_remove,
            args=(project, user, person),
        )
    if rows:
        with st.expander("Progress by person", icon=":material/group:", key="manage.team.progress"):
            cells = [
                {
                    "Person": row.person,
                    "Stage": STAGES[row.stage],
                    "Submitted": row.submitted,
                    "Assigned": f"{row.assigned - row.unfinished:,} of {row.assigned:,} done" if row.assigned else "",
                    "In progress": row.leased,
                    "Sent back": row.returned,
                    "Skipped": row.skipped,
                    "Gold": row.gold,
                    "Time (h)": round(row.seconds / 3600, 2),
                }
                for row in rows
            ]
            table(cells, "Progress by person and stage", columns=fitted(cells))


@reported
def _remove(project: Project, user: str, person: str) -> None:
    shared.store().assignments.unassign(user, project.id, person)
    say(f"Removed the unfinished assignments of {person}.")


def numbers(text: str) -> list[int]:
    """Positions (from 0) of item numbers such as "1-20, 25".  Raises InputError.

    >>> numbers("1-3, 7")
    [0, 1, 2, 6]
    """
    positions: dict[int, None] = {}
    for part in text.replace("\u2013", "-").split(","):
        first, dash, last = (number.strip() for number in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(f"'{part.strip()[:40]}' is no item number: write numbers such as 1-20, 25")
        start, end = int(first), int(last or first)
        if not 1 <= start <= end or end - start >= MAX_NUMBERS:
            raise InputError(f"'{part.strip()[:40]}' is no range of item numbers; at most {MAX_NUMBERS:,} are assigned at once")
        positions |= dict.fromkeys(range(start - 1, end))
    return list(positions)


def assign(project: Project, stage: WorkStage, user: str) -> None:
    """The form that assigns items of a stage."""
    people = shared.store().people.people(user, limit=500)
    names = [p.name for p in people if p.active and (stage != "validation" or p.role != "annotator")]
    key = f"manage.assign.{project.id}.{stage}"
    with st.expander(f"Assign items: {STAGES[stage]}", icon=":material/person_add:", key=key):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Item numbers", key=f"{key}.items", placeholder="1-20, 25", max_chars=2_000, width=200)
            st.multiselect("People", names, key=f"{key}.people", placeholder="Nobody: open to everybody", width=320)
            st.segmented_control("Several people", [SHARED, EACH], default=SHARED, required=True, key=f"{key}.how")
            st.button("Assign", key=f"{key}.go", on_click=_assign, args=(project, stage, user, key))
        st.caption(
            "An item is given to its people first. Others get it only if it takes more people than are assigned. This replaces earlier "
            "assignments of these items."
        )


@reported
def _assign(project: Project, stage: WorkStage, user: str, key: str) -> None:
    state = st.session_state
    positions, people = numbers(str(state.get(f"{key}.items") or "")), list(state.get(f"{key}.people") or ())
    assignees = dict.fromkeys(positions, people)
    if people and state.get(f"{key}.how") == SHARED:
        assignees = {position: [person] for position, person in zip(positions, cycle(people))}
    shared.store().assignments.assign(user, project.id, stage, assignees)
    say(f"{len(positions):,} items assigned." if people else f"{len(positions):,} items are open to everybody.")
