"""One's own items: drafts, what came back, what was submitted, and how it was settled."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from pages.annotate import place
from pages.annotate.stage_info import draw_annotation
from pages.session import shared
from pages.ui.markup import escape, named, short
from storage.records.annotation import Task
from storage.records.enumerations import TaskState, WorkStage
from storage.records.projects import Project

PAGE = 20
STATES: dict[TaskState, str] = {
    "returned": ":red-badge[sent back to you]",
    "leased": ":orange-badge[open]",
    "expired": ":orange-badge[reservation expired, draft kept]",
    "released": ":gray-badge[returned to the queue]",
    "submitted": ":green-badge[submitted]",
    "skipped": ":gray-badge[skipped]",
}


def _open(item: str) -> None:
    st.session_state["annotate.wanted"] = item
    st.session_state["annotate.view"] = "Next item"


def draw(project: Project, stage: WorkStage, who: str) -> None:
    page = int(st.session_state.get("annotate.mine.page", 1))
    tasks = place.store().queue.tasks(project.id, who, annotator=who, stage=stage, limit=PAGE + 1, offset=(page - 1) * PAGE)
    if not tasks:
        st.info("You have not opened any items at this stage yet.")
        return
    for task in tasks[:PAGE]:
        _row(task, who)
    more = len(tasks) > PAGE
    if more or page > 1:
        st.pagination(page + more, key="annotate.mine.page")


def _row(task: Task, who: str) -> None:
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            late = " :gray-badge[extra, not counted]" if task.over else ""
            st.markdown(f"{STATES[task.state]}{late} **{escape(short(task.question, 140))}**")
            st.button(named("Open", task.question), key=f"annotate.mine.{task.item}", on_click=_open, args=(task.item,))
        st.caption(f"{task.updated.astimezone():%Y-%m-%d %H:%M}{f' · {escape(task.reason)}' if task.reason else ''}")
        if task.stage == "generation" and task.state == "submitted":
            _compare(task, who)


def _compare(task: Task, who: str) -> None:
    with st.expander(named("Compare yours with the final answer set", f"of {task.question}")):
        try:
            both = place.store().reviews.mine_and_final(task.item, who)
        except AmbiscopeError as error:
            shared.show_error(error)
            return
        left, right = st.columns(2)
        with left:
            st.markdown("**Yours**")
            if both.mine is not None:
                draw_annotation(both.mine, both.question)
        with right:
            st.markdown("**Final**")
            if both.final is None:
                st.caption("Not validated yet.")
            else:
                draw_annotation(both.final, both.question)
                if both.automatic:
                    st.caption("Everybody gave the same answers, so nobody had to validate them.")
                if both.note:
                    st.caption(f"The validator wrote: {escape(both.note)}")
