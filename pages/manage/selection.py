"""Actions on the items selected in the table: assign, reopen, remove, change the number of people, make gold."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.text import listed
from pages.manage import assignments
from pages.session import shared
from pages.session.actions import reported, say
from pages.ui.markup import full_label
from storage.records.enumerations import WorkStage
from storage.records.projects import MAX_ANNOTATORS, ItemSummary, Project


def draw(project: Project, stage: WorkStage, user: str, items: Sequence[ItemSummary], table: str) -> None:
    """The actions on these items, at least one.  `table`: the key of the table, whose selection they clear."""
    key, ids = f"manage.selected.{project.id}.{stage}", [item.id for item in items]
    with st.container(horizontal=True, vertical_alignment="center", key="manage.selected"):
        st.markdown(f"**{listed(len(items), 'item')} selected**", width="content")
        with st.popover("Assign", icon=":material/person_add:"):
            assignments.people_fields(project, stage, user, key)
            st.button("Assign them", key=f"{key}.assign", on_click=_assign, args=(project, stage, user, key, items))
        with st.popover("Reopen", icon=":material/undo:"):
            st.text_input("What should people change?", key=f"{key}.reason", max_chars=500)
            st.caption("Everything submitted for these items at this stage goes back to the people who did it.")
            st.button("Send everything back", key=f"{key}.reopen", on_click=_reopen, args=(project, stage, user, key, ids))
        if stage != "validation":
            with st.popover("People per item", icon=":material/group:"):
                number = max(1, min(item.slots for item in items))
                st.number_input("People per item", 1, MAX_ANNOTATORS, min(number, MAX_ANNOTATORS), key=f"{key}.people_per_item")
                st.button("Save", key=f"{key}.slots", on_click=_set_people, args=(project, user, key, ids))
        with st.popover("Remove", icon=":material/delete:"):
            st.caption("Only items that nobody has opened can be removed. Stored questions and predictions are kept.")
            st.button(
                f"Remove {listed(len(ids), 'item')}", key=f"{key}.remove", on_click=_remove, args=(project, user, ids, table)
            )
        if len(items) == 1 and not items[0].gold:
            with st.popover("Make gold", icon=":material/verified:"):
                st.caption(
                    "The final answer set becomes the right answer. The item is then mixed into the work of people who haven't had it, and "
                    "its submissions no longer count as data."
                )
                label = full_label("Make it a gold item", items[0].question)
                st.button(label, key=f"{key}.gold", on_click=_make_gold, args=(project, user, ids[0]))


@reported
def _assign(project: Project, stage: WorkStage, user: str, key: str, items: Sequence[ItemSummary]) -> None:
    assignments.assign_items(project, stage, user, key, [item.position for item in items])


@reported
def _reopen(project: Project, stage: WorkStage, user: str, key: str, ids: list[str]) -> None:
    reason = str(st.session_state.get(f"{key}.reason") or "").strip()
    count = shared.store().selection.reopen_items(user, project.id, stage, ids, reason)
    say(f"{listed(count, 'piece')} of work sent back.")


@reported
def _set_people(project: Project, user: str, key: str, ids: list[str]) -> None:
    number = int(st.session_state[f"{key}.people_per_item"])
    shared.store().selection.set_people(user, project.id, ids, number)
    say(f"{listed(len(ids), 'item')}: {number} people each." if number > 1 else f"{listed(len(ids), 'item')}: one person each.")


@reported
def _remove(project: Project, user: str, ids: list[str], table: str) -> None:
    count = shared.store().selection.remove_items(user, project.id, ids)
    st.session_state.pop(table, None)
    say(f"{listed(count, 'item')} removed.")


@reported
def _make_gold(project: Project, user: str, item: str) -> None:
    shared.store().selection.make_gold(user, project.id, item)
    say("It is a gold item now.")
