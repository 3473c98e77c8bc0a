"""Annotate: choose a project and a stage, then one item after another."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.errors import AmbiscopeError, InputError
from pages.annotate import (
    generation,
    judging,
    my_items,
    practising,
    search,
    stage_info,
    state,
    submit_bar,
    suggestions,
    validation,
)
from pages.annotate.state import Work
from pages.session import comments, place, retraining, shared
from pages.ui import keys
from pages.ui.keyboard import capture_keys, legend
from pages.ui.markup import escape, short
from pages.ui.stages import IN_SHORT, STAGES, draw_guidelines
from storage.records.enumerations import WorkStage
from storage.records.projects import Guidelines, Project, WaitingWork

FOLDED_CHARS = 300  # a longer question would push the form off the screen
# each has draw, content, blocked, lines, and answers (marked in an opened passage)
FORMS: dict[WorkStage, Any] = {"generation": generation, "validation": validation, "judging": judging}


def _keep_in_address(name: str, key: str) -> None:
    """Callback: puts the choice into the address, so that a reload comes back to it."""
    st.query_params[name] = str(st.session_state.get(key) or "")


def _with_work(projects: list[str], waiting: Mapping[str, WaitingWork]) -> str:
    """The project with work for this person, first returned, then started, then assigned work; else the newest project."""
    return (
        min(waiting.values(), key=lambda w: (not w.returned, not w.drafts, not w.assigned)).project if waiting else projects[0]
    )


def _first_stage(project: Project, waiting: WaitingWork | None) -> WorkStage:
    """The address's stage, or else the one with returned work, or else a validator's validation and everybody else's first
    stage."""
    named = [s for s in project.stages if s == st.query_params.get("stage")]
    returned = [s for s in project.stages if waiting and s in waiting.returned]
    is_validator = place.store().people.require(shared.annotator()).role == "validator"
    validates = [s for s in project.stages if s == "validation" and is_validator]
    return (*named, *returned, *validates, *project.stages)[0]


def choose() -> tuple[Project, WorkStage] | None:
    """The top of the page, on one line if it fits."""
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
    by_id = {p.id: p for p in projects}
    ids = list(by_id)
    waiting = {w.project: w for w in place.store().waiting.of_person(shared.annotator())}
    project_id = st.query_params.get("project", "")
    is_gone = bool(project_id) and project_id not in ids
    if is_gone:
        shared.show_error(InputError("the project in this address is closed or does not exist; choose another one"))
    with line:
        key = "annotate.project"
        choice = st.selectbox(
            "Project",
            ids,
            index=None if is_gone else ids.index(project_id or _with_work(ids, waiting)),
            format_func=lambda i: by_id[i].name,
            key=key,
            on_change=_keep_in_address,
            args=("project", key),
            width=240,
            label_visibility="collapsed",
        )
        if choice is None:
            return None
        project = by_id[choice]
        stages = list(project.stages)
        stage = st.segmented_control(
            "Stage",
            stages,
            default=_first_stage(project, waiting.get(project.id)),
            required=True,
            format_func=lambda s: STAGES[s],
            key=f"annotate.stage.{project.id}",
            on_change=_keep_in_address,
            args=("stage", f"annotate.stage.{project.id}"),
            label_visibility="collapsed",
        )
        views = ["Next item", "My items"]
        if st.query_params.pop("view", "") == "mine":  # the link of a notice
            st.session_state["annotate.view"] = views[1]
        view = st.segmented_control(
            "Show", views, default=views[0], required=True, key="annotate.view", label_visibility="collapsed"
        )
        if not place.practising() and place.practice_file().is_file():
            practising.offer()
    st.session_state["annotate.mine"] = view == "My items"
    return project, stage or stages[0]


def _open(project: Project, stage: WorkStage, user: str) -> Work | None:
    """This tab's work, or the next item.  Raises the store's errors."""
    store = place.store()
    from_address = st.query_params.pop("item", "")
    item_id = st.session_state.pop(submit_bar.NEXT_ITEM, "") or from_address
    work = state.current()
    if work is not None:
        is_same = (work.project.id, work.stage, work.user) == (project.id, stage, user)
        if is_same and item_id in ("", work.task.item):
            work.project = project  # its settings may have been changed
            work.count_time()
            return work
        if work.version == 0 and not work.opened_ids and work.task.state == "leased":
            with contextlib.suppress(AmbiscopeError):  # nothing was done on it: it is open to others at once
                store.queue.release_item(work.task.item, work.user, work.stage)
    state.close()
    if item_id:
        if task := store.queue.claim_item(item_id, user, stage):
            return state.begin(project, task, user)
        st.warning("This item is taken, or is waiting for the previous stage. Here is your next item.")
    for _ in range(5):
        task = store.queue.next_item(project.id, user, stage)
        if task is None:
            return None
        if stage != "validation" or store.items.get_item(task.item, user).states.get("validation") != "waiting":
            return state.begin(project, task, user)
        store.queue.release_item(task.item, user, stage)  # an annotation was sent back meanwhile: it waits again
    return None


def _question(work: Work) -> None:
    with st.container(key="annotate.question"):
        text = work.task.question
        st.subheader(escape(short(text, FOLDED_CHARS)), anchor=False)
        if len(text) > FOLDED_CHARS:
            with st.expander("The whole question"):
                st.markdown(escape(text))
    if work.task.state == "returned" and work.task.reason:
        st.markdown(f":red-badge[returned to you] {escape(work.task.reason)}")
    if work.task.state == "submitted":
        st.markdown(":blue-badge[submitted] You can change it and submit again.")


@st.fragment
def draw(work: Work, guidelines: Guidelines | None, is_first: bool) -> None:
    """The form, fixed on the left with its submit bar, and the material for it on the right.  `is_first`: it is this person's
    first item."""
    if work.refresh:
        work.refresh = False
        st.rerun()
    if not shared.store().may("annotate"):
        st.rerun()  # signed out meanwhile: the whole page, which begins with the sign-in, says why
    form, is_judging = FORMS[work.stage], work.stage == "judging"
    with st.container(key="annotate.area"):
        form_column, side_column = st.columns([2, 1] if is_judging else [6, 5], gap="medium")
    with form_column:
        _question(work)
        form.draw(work)
        with st.container(key="annotate.bar"):
            submit_bar.draw(work, form.content, lambda: form.blocked(work), form.lines)
    with side_column:
        if is_first:
            st.markdown(IN_SHORT[work.stage])
        draw_guidelines(guidelines, work.stage)
        if is_judging:
            judging.aside(work)
        with st.container(key="annotate.search"):
            search.draw(work, list(form.answers(work)), generation.cite_buttons if work.stage == "generation" else None)
        suggestions.draw(work)
        comments.draw(work.task.item, work.user)
        shown = list(judging.legend(work) if is_judging else form.KEYS)
        if not is_judging and work.suggestions:
            shown += [*keys.SUGGESTIONS, *(keys.REJECTING if work.stage == "generation" else ())]
        if not is_judging and work.reading is not None:
            shown += keys.READING
        if work.item.passages is None:
            shown += keys.SEARCHING
        legend((*shown, *keys.EVERYWHERE))
    focus = submit_bar.focus(work)
    capture_keys(f"{work.task.item}.{work.stage}", *(judging.focus(work) if is_judging and not any(focus) else focus))


def main() -> None:
    if (choice := choose()) is None:
        return
    project, stage = choice
    user = shared.annotator()
    submit_bar.belongs_to(user)
    with st.container(horizontal=True, vertical_alignment="center"):
        mine = stage_info.draw_progress(project, stage, user)
        if not st.session_state["annotate.mine"]:
            submit_bar.after(project)
    guidelines = place.store().projects.guidelines(project.id)
    if st.session_state["annotate.mine"]:
        comments.draw_new(project.id, user)
        my_items.draw(project, stage, user)
        if not place.practising():
            retraining.button("annotate.learn")
        return
    if stage_info.draw_feedback(stage):
        return
    work = _open(project, stage, user)
    if work is None:
        stage_info.draw_nothing_left(project, stage, user, mine)
        st.button("Check again", key="annotate.again")
        return
    draw(work, guidelines, mine.submitted == 0)


main()
