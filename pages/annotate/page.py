"""Annotate: choose a project and a stage, then one item after another."""

from __future__ import annotations

import contextlib
from typing import Any

import streamlit as st

from core.errors import AmbiscopeError, InputError
from pages.annotate import (
    comments,
    generation,
    judging,
    my_items,
    place,
    practising,
    search,
    stage_info,
    state,
    submit_bar,
    suggestions,
    validation,
)
from pages.annotate.state import Work
from pages.quality import learning
from pages.session import shared
from pages.ui.keyboard import SUBMIT, capture_keys, legend
from pages.ui.markup import escape
from storage.records.enumerations import WorkStage
from storage.records.projects import Guidelines, Project

WANTED = "annotate.wanted"
BACK = ("B", "back to the results")
# each has draw, content, blocked, and answers (marked in an opened passage)
FORMS: dict[WorkStage, Any] = {"generation": generation, "validation": validation, "judging": judging}


def _from_address(name: str) -> str:
    return str(st.query_params.get(name, ""))


def _note(name: str, key: str) -> None:
    """Callback: the address keeps the choice, so that a reload comes back to it."""
    st.query_params[name] = str(st.session_state.get(key) or "")


def choose() -> tuple[Project, WorkStage] | None:
    """The top of the page, in one line where it fits."""
    line = st.container(horizontal=True, vertical_alignment="center")
    line.header("Annotate", anchor=False, width="content")
    if place.practising():
        practising.bar()
    projects = place.store().projects.projects(state="open", limit=200)
    if not projects:
        st.info("There is no open project yet. A manager can create one from a question file. Until then you can practise.")
        with st.container(horizontal=True, vertical_alignment="center"):
            practising.offer()
            st.page_link("pages/manage/page.py", label="Create a project", icon=":material/assignment_ind:")
        return None
    named = {p.id: p for p in projects}
    ids = list(named)
    project_id = _from_address("project")
    if project_id and project_id not in ids:
        raise InputError("the project in this address is closed or does not exist; choose another one")
    with line:
        key = "annotate.project"
        choice = st.selectbox(
            "Project",
            ids,
            index=ids.index(project_id) if project_id else 0,
            format_func=lambda i: named[i].name,
            key=key,
            on_change=_note,
            args=("project", key),
            width=240,
            label_visibility="collapsed",
        )
        project = named[choice]
        stages = list(project.stages)
        stage_name = _from_address("stage")
        stage = st.segmented_control(
            "Stage",
            stages,
            default=next((s for s in stages if s == stage_name), stages[0]),
            required=True,
            format_func=lambda s: stage_info.STAGES[s],
            key=f"annotate.stage.{project.id}",
            on_change=_note,
            args=("stage", f"annotate.stage.{project.id}"),
            label_visibility="collapsed",
        )
        views = ["Next item", "My items"]
        view = st.segmented_control(
            "Show", views, default=views[0], required=True, key="annotate.view", label_visibility="collapsed"
        )
        if not place.practising() and place.practice_file().is_file():
            practising.offer()
    st.session_state["annotate.mine"] = view == "My items"
    return project, stage or stages[0]


def _open(project: Project, stage: WorkStage, who: str) -> Work | None:
    """The work of this tab, or the next item.  Raises the store's errors."""
    store = place.store()
    item_id = st.session_state.pop(WANTED, "") or _from_address("item")
    if "item" in st.query_params:
        del st.query_params["item"]
    work = state.current()
    same = work is not None and (work.project.id, work.stage, work.who) == (project.id, stage, who)
    if work is not None and same and item_id in ("", work.task.item):
        work.count_time()
        return work
    if work is not None:
        _give_back(work)
    state.close()
    if item_id:
        task = store.queue.claim_item(item_id, who, stage)
        if task is None:
            st.warning("This item is taken, or is waiting for the previous stage. Here is your next item.")
        else:
            return state.begin(project, task, who)
    for _ in range(5):
        task = store.queue.next_item(project.id, who, stage)
        if task is None:
            return None
        if stage == "validation" and store.items.get_item(task.item, who).states.get("validation") == "waiting":
            store.queue.release_item(task.item, who, stage)  # an annotation was sent back meanwhile: it waits again
            continue
        return state.begin(project, task, who)
    return None


def _give_back(work: Work) -> None:
    """Another name, project or stage was chosen: an item on which nothing was done is somebody else's to take at once."""
    if work.version == 0 and not work.opened and work.task.state == "leased":
        with contextlib.suppress(AmbiscopeError):
            place.store().queue.release_item(work.task.item, work.who, work.stage)


def _question(work: Work) -> None:
    with st.container(key="annotate.question"):
        st.subheader(escape(work.task.question), anchor=False)
    if work.task.state == "returned" and work.task.reason:
        st.markdown(f":red-badge[returned to you] {escape(work.task.reason)}")
    if work.task.state == "submitted":
        st.markdown(":blue-badge[submitted] You can change it and submit again.")


@st.fragment
def draw(work: Work, guidelines: Guidelines | None, is_first: bool) -> None:
    """The form, fixed on the left with its submit bar; what helps to fill it in on the right.  `is_first`: of this person."""
    if work.refresh:
        work.refresh = False
        st.rerun()
    form, is_judging = FORMS[work.stage], work.stage == "judging"
    with st.container(key="annotate.area"):
        left, right = st.columns([2, 1] if is_judging else [6, 5], gap="medium")
    with left:
        _question(work)
        form.draw(work)
        with st.container(key="annotate.bar"):
            submit_bar.draw(work, form.content, lambda: form.blocked(work))
    with right:
        if is_first:
            st.markdown(stage_info.IN_SHORT[work.stage])
        stage_info.draw_guidelines(guidelines, work.stage)
        if is_judging:
            judging.aside(work)
        search.draw(work, list(form.answers(work)), generation.cite_buttons if work.stage == "generation" else None)
        suggestions.draw(work)
        comments.draw(work.task.item, work.who)
        keys = list(judging.keys(work) if is_judging else form.KEYS)
        if not is_judging and work.suggestions:
            keys += [*suggestions.KEYS, *([suggestions.REJECT] if work.stage == "generation" else [])]
        if not is_judging and work.reading is not None:
            keys.append(BACK)
        legend((*keys, ("U", "undo"), (SUBMIT, "submit")))
    capture_keys(f"{work.task.item}.{work.stage}", *(judging.focus(work) if is_judging else ()))


def main() -> None:
    chosen = choose()
    if chosen is None:
        return
    project, stage = chosen
    who = shared.annotator()
    submit_bar.belongs_to(who)
    with st.container(horizontal=True, vertical_alignment="center"):
        own = stage_info.draw_progress(project, stage, who)
        if not st.session_state["annotate.mine"]:
            submit_bar.after()
    guidelines = place.store().projects.guidelines(project.id)
    if st.session_state["annotate.mine"]:
        my_items.draw(project, stage, who)
        if not place.practising():
            learning.draw("annotate.learn")
        return
    if stage_info.draw_feedback():
        return
    work = _open(project, stage, who)
    if work is None:
        stage_info.draw_nothing_left(project, stage, who, own)
        st.button("Check again", key="annotate.again")
        return
    draw(work, guidelines, own.submitted == 0)


main()
