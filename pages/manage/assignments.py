"""Assigned items, and the progress of each person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import streamlit as st

from core.errors import InputError
from core.text import listed
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.markup import escape, full_label
from pages.ui.stages import STAGES
from pages.ui.tables import fitted, table
from storage.records.enumerations import WorkStage
from storage.records.projects import Project

EACH, SHARED = "Each person gets all of them", "Share them out"
MAX_NUMBERS = 5_000  # items of one assignment
FIXED_COLUMNS = ("Person", "Stage", "Submitted", "Time (h)")  # columns that are there also where they say nothing
NAME_PIXELS = 160


def by_person(project: Project, user: str) -> None:
    """Progress by person and stage, preceded by the assignments of people who can't do them."""
    rows = shared.store().assignments.progress_by_person(project.id, user)
    lost = Counter[str]()
    for row in rows:
        if not row.works and row.unfinished:
            lost[row.person] += row.unfinished
    for person, count in lost.items():
        st.warning(
            f"{escape(person)} cannot work at this stage any more (account inactive, or another role). {listed(count, 'item')} "
            f"assigned to this person {'are' if count > 1 else 'is'} open to everybody again.",
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
            cells: list[dict[str, Any]] = [
                {
                    "Person": row.person,
                    "Stage": STAGES[row.stage],
                    "Submitted": row.submitted,
                    "Time (h)": round(row.seconds / 3600, 2),
                    "Assigned": f"{row.assigned - row.unfinished:,} of {row.assigned:,} done" if row.assigned else "",
                    "In progress": row.leased,
                    "Sent back": row.returned,
                    "Skipped": row.skipped,
                    "Gold": row.gold,
                }
                for row in rows
            ]
            cells = [
                {name: cell for name, cell in row.items() if name in FIXED_COLUMNS or any(r[name] for r in cells)}
                for row in cells
            ]
            columns = fitted(cells) | {"Person": st.column_config.Column(width=NAME_PIXELS, pinned=True)}
            table(cells, "Progress by person and stage", columns=columns, csv_name="progress by person")


@reported
def _remove(project: Project, user: str, person: str) -> None:
    shared.store().assignments.unassign(user, project.id, person)
    say(f"Removed the unfinished assignments of {person}.")


def numbers(text: str) -> list[int]:
    """The positions (from 0) of item numbers such as "1-20, 25".  Raises InputError.

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


def people_fields(project: Project, stage: WorkStage, user: str, key: str) -> None:
    """Fields for the people that items are assigned to and how several of them share the items; `assign_items` reads them."""
    people = shared.store().people.people(user, limit=500)
    names = [p.name for p in people if p.active and (stage != "validation" or p.role != "annotator")]
    st.multiselect("People", names, key=f"{key}.people", placeholder="Nobody: open to everybody", width=320)
    st.segmented_control("Several people", [SHARED, EACH], default=SHARED, required=True, key=f"{key}.how")


def assign_items(project: Project, stage: WorkStage, user: str, key: str, positions: Sequence[int]) -> None:
    """Assigns the items at these positions to the people of `people_fields`.  Raises the store's errors."""
    state = st.session_state
    people = list(state.get(f"{key}.people") or ())
    assignees = dict.fromkeys(positions, people)
    if people and state.get(f"{key}.how") == SHARED:
        assignees = {position: [person] for position, person in zip(positions, cycle(people))}
    shared.store().assignments.assign(user, project.id, stage, assignees)
    items = listed(len(positions), "item")
    say(f"{items} assigned." if people else f"{items} open to everybody.")


def assign(project: Project, stage: WorkStage, user: str) -> None:
    """The form that assigns a stage's items by number, because a selection in the table is limited to one page."""
    key = f"manage.assign.{project.id}.{stage}"
    with st.expander(f"Assign items by number: {STAGES[stage]}", icon=":material/person_add:", key=key):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Item numbers", key=f"{key}.items", placeholder="1-20, 25", max_chars=2_000, width=200)
            people_fields(project, stage, user, key)
            st.button("Assign", key=f"{key}.go", on_click=_assign, args=(project, stage, user, key))
        st.caption(
            "An item is given to its people first. Others get it only if it takes more people than are assigned. This replaces earlier "
            "assignments of these items."
        )


@reported
def _assign(project: Project, stage: WorkStage, user: str, key: str) -> None:
    assign_items(project, stage, user, key, numbers(str(st.session_state.get(f"{key}.items") or "")))
