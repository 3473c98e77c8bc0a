"""The form for a new project.  It stays open, with everything in it, until the project is created or somebody closes it."""

from __future__ import annotations

import streamlit as st

from core import datasets
from core.errors import AmbiscopeError, InputError
from core.types import ReferenceQuestion
from pages.manage import question_upload
from pages.manage import settings as project_settings
from pages.manage.guidelines import first_examples, template
from pages.session import shared
from pages.session.actions import ERROR, MESSAGE
from pages.ui.stages import STAGES
from storage.records.enumerations import WorkStage

SOURCES = ("Starter questions", "Upload a file", "None yet")
KEY_PREFIX = "manage.new"
FILE, IS_OPEN, CREATE_ERROR = f"{KEY_PREFIX}.file", f"{KEY_PREFIX}.open", f"{KEY_PREFIX}.refused"


def draw(user: str, is_first: bool) -> None:
    """`is_first`: there is no project yet."""
    state = st.session_state
    if IS_OPEN not in state:  # at the first visit, and when somebody comes back to the page
        state[IS_OPEN] = is_first or bool(state.get(f"{KEY_PREFIX}.name")) or question_upload.uploaded_file(FILE) is not None
    # with a key and a state: without, Streamlit closes it whenever something above appears or disappears
    with st.expander("New project", key=IS_OPEN, on_change="rerun", icon=":material/add:"):
        st.text_input(
            "Name", key=f"{KEY_PREFIX}.name", max_chars=200, placeholder="Ambiguous questions, round 1", persist_state="session"
        )
        st.pills(
            "Stages",
            list(STAGES),
            selection_mode="multi",
            default=["generation", "validation"],
            format_func=STAGES.__getitem__,
            key=f"{KEY_PREFIX}.stages",
            persist_state="session",
            help="Writing: people write answer sets. Validation: another person merges them. Judging: people label a system's answers.",
        )
        source = st.radio("Questions", SOURCES, horizontal=True, key=f"{KEY_PREFIX}.source", persist_state="session")
        with st.container():
            if source == SOURCES[1]:
                question_upload.uploader(FILE)
        project_settings.fields(KEY_PREFIX, None)
        st.caption(
            "The project starts with default guidelines for its stages, with examples if people write answers. You can edit them later."
        )
        if error := state.pop(CREATE_ERROR, None):  # beside the button: the top of the page may be out of sight
            shared.show_error(error)
        st.button("Create project", type="primary", key=f"{KEY_PREFIX}.make", on_click=_create, args=(user,))


def _questions(source: str) -> list[ReferenceQuestion]:
    if source == SOURCES[0]:
        return datasets.load(shared.settings().starter_dir / "questions.json")
    if source == SOURCES[2]:
        return []
    return question_upload.questions(FILE, ", or another source")


def _create(user: str) -> None:
    """Callback.  The questions are read before anything is stored."""
    state = st.session_state
    name = str(state.get(f"{KEY_PREFIX}.name") or "").strip()
    stages: list[WorkStage] = list(state.get(f"{KEY_PREFIX}.stages") or ())
    source = str(state.get(f"{KEY_PREFIX}.source"))
    store = shared.store()
    try:
        if not name:
            raise InputError("the project has no name; enter one")
        store.people.require(user, "manager")
        if not stages:
            raise InputError("the project has no stage; choose at least one")
        values = project_settings.values(KEY_PREFIX)
        if "judging" in stages and not values["systems"]:
            raise InputError("the judging stage needs one or two systems; choose them under Systems")
        questions = _questions(source)
        project = store.projects.create_project(
            user, name, stages=tuple(stages), guidelines=template(stages), examples=first_examples(stages), **values
        )
    except AmbiscopeError as error:
        state[CREATE_ERROR], state[IS_OPEN] = error, True
        return
    state[MESSAGE] = f"Project {name} was created."
    state["manage.project"] = project.id
    state[f"{KEY_PREFIX}.name"] = ""
    try:
        if questions:
            report = store.intake.add_items(user, project.id, questions)
            state[MESSAGE] += f" {question_upload.summary(report)}"
    except AmbiscopeError as error:  # the project exists: its questions can be added under Items
        state[MESSAGE] += " Its questions were not added; add them under Items."
        state[ERROR] = error
        return
    if source == SOURCES[1]:
        question_upload.discard(FILE)
    state[IS_OPEN] = False
