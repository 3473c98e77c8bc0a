"""A person's own items: drafts, returned work, submitted work, and the final answer sets."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from core.text import time_text
from pages.annotate.submit_bar import NEXT_ITEM
from pages.session import place, shared
from pages.ui.markup import escape, full_label, short
from pages.ui.stages import draw_annotation
from storage.records.annotation import Task
from storage.records.enumerations import TaskState, WorkStage
from storage.records.projects import Project

ITEMS_PER_PAGE = 20
STATES: dict[TaskState, str] = {
    "returned": ":red-badge[sent back to you]",
    "leased": ":orange-badge[open]",
    "expired": ":orange-badge[reservation expired, draft kept]",
    "released": ":gray-badge[returned to the queue]",
    "submitted": ":green-badge[submitted]",
    "skipped": ":gray-badge[skipped]",
}


def draw(project: Project, stage: WorkStage, user: str) -> None:
    page_key = f"annotate.mine.page.{project.id}.{stage}.{user}"
    page = int(st.session_state.get(page_key, 1))
    tasks = place.store().queue.tasks(
        project.id, user, annotator=user, stage=stage, limit=ITEMS_PER_PAGE + 1, offset=(page - 1) * ITEMS_PER_PAGE
    )
    if not tasks:
        st.info("You have not opened any items at this stage yet.")
        return
    for task in tasks[:ITEMS_PER_PAGE]:
        _row(task, user)
    has_more = len(tasks) > ITEMS_PER_PAGE
    if has_more or page > 1:
        st.pagination(page + has_more, key=page_key)


def _row(task: Task, user: str) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            extra = " :gray-badge[extra, not counted]" if task.over else ""
            st.markdown(f"{STATES[task.state]}{extra} **{escape(short(task.question, 140))}**")
            opened = {NEXT_ITEM: task.item, "annotate.view": "Next item"}
            label, key = full_label("Open", task.question), f"annotate.mine.{task.item}"
            st.button(label, key=key, on_click=st.session_state.update, args=(opened,))
        st.caption(f"{time_text(task.updated)}{f' · {escape(task.reason)}' if task.reason else ''}")
        if task.stage == "generation" and task.state == "submitted":
            _compare(task, user)


def _compare(task: Task, user: str) -> None:
    with st.expander(full_label("Compare yours with the final answer set", f"of {task.question}")):
        try:
            comparison = place.store().reviews.mine_and_final(task.item, user)
        except AmbiscopeError as error:
            shared.show_error(error)
            return
        mine, final = st.columns(2)
        with mine:
            st.markdown("**Yours**")
            if comparison.mine is not None:
                draw_annotation(comparison.mine, comparison.question)
        with final:
            st.markdown("**Final**")
            if comparison.final is None:
                st.caption("Not validated yet.")
                return
            draw_annotation(comparison.final, comparison.question)
            if comparison.automatic:
                st.caption("Everybody gave the same answers, so nobody had to validate them.")
            if comparison.note:
                st.caption(f"The validator wrote: {escape(comparison.note)}")
