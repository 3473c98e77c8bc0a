"""Annotate: choose a project and a stage, then one item after another."""

from __future__ import annotations

import contextlib

import streamlit as st

from core.errors import AmbiscopeError, InputError
from pages.annotate import generation, judging, my_items, place, practising, search, stage_info, state, submit_bar, validation
from pages.annotate.state import Work
from pages.quality import learning
from pages.session import shared
from pages.ui.markup import escape
from storage.records.enumerations import WorkStage
from storage.records.projects import Project

WANTED = "annotate.wanted"


def _from_address(name: str) -> str:
    return str(st.query_params.get(name, ""))


def _note(name: str, key: str) -> None:
    """Callback: the address keeps the choice, so that a reload comes back to it."""
    st.query_params[name] = str(st.session_state.get(key) or "")


def choose() -> tuple[Project, WorkStage] | None:
    if place.practising():
        practising.bar()
    projects = place.store().projects.projects(state="open", limit=200)
    if not projects:
        st.info("There is no open project yet. A manager can create one from a question file. Until then you can practise.")
        with st.container(horizontal=True, vertical_alignment="center"):
            practising.offer()
            st.page_link("pages/manage/page.py", label="Create a project", icon=":material/assignment_ind:")
        return None
    if not place.practising() and place.practice_file().is_file():
        practising.offer()
    named = {p.id: p for p in projects}
    ids = list(named)
    project_id = _from_address("project")
    if project_id and project_id not in ids:
        raise InputError("the project in this address is closed or does not exist; choose another one")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = "annotate.project"
        choice = st.selectbox(
            "Project",
            ids,
            index=ids.index(project_id) if project_id else 0,
            format_func=lambda i: named[i].name,
            key=key,
            on_change=_note,
            args=("project", key),
            width=360,
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
        )
        view = st.segmented_control("Show", ["Next item", "My items"], default="Next item", required=True, key="annotate.view")
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
            st.warning("Other people have this item, or it waits for the previous stage. Here is your next item.")
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


def draw(work: Work) -> None:
    with st.container(key="annotate.question"):
        st.subheader(escape(work.task.question), divider="gray", anchor=False)
    notes = []
    if work.task.gold:
        notes.append(":orange-badge[qualification] You will see the right answer after you submit.")
    if work.task.state == "returned" and work.task.reason:
        notes.append(f":red-badge[returned to you] {escape(work.task.reason)}")
    if work.task.state == "submitted":
        notes.append(":blue-badge[submitted] You can change it and submit again.")
    for note in notes:
        st.markdown(note)
    if work.stage == "judging":
        judging.pane(work)
        with st.expander("Is an answer missing? Search the passages", icon=":material/search:", key=work.key("further")):
            search.pane(work, judging.answers)
        return
    left, right = st.columns([5, 6], gap="medium")
    if work.stage == "generation":
        with left:
            search.pane(work, generation.answers, generation.cite_buttons)
        with right:
            generation.pane(work)
        return
    with left:
        search.pane(work, validation.answers)
    with right:
        validation.pane(work)


def main() -> None:
    st.header("Annotate", anchor=False)
    chosen = choose()
    if chosen is None:
        return
    project, stage = chosen
    who = shared.annotator()
    submit_bar.belongs_to(who)
    own = stage_info.draw_progress(project, stage, who)
    stage_info.draw_guidelines(place.store().projects.guidelines(project.id), stage, expanded=own.submitted + own.gold == 0)
    if st.session_state["annotate.mine"]:
        my_items.draw(project, stage, who)
        if not place.practising():
            learning.draw("annotate.learn")
        return
    submit_bar.after()
    if stage_info.draw_feedback():
        return
    work = _open(project, stage, who)
    if work is None:
        stage_info.draw_nothing_left(project, stage, who, own)
        st.button("Check again", key="annotate.again")
        return
    draw(work)


main()
