"""The items of a project: table with states and filters, what was submitted for one, sending work back, more questions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core.errors import AmbiscopeError, InputError
from pages import _manage_import as importing
from pages import _shared
from pages._annotate_about import STAGES, draw_annotation
from pages._markup import plain
from storage.records_annotation import ItemSummary, JudgingWork, Project, Submission, WorkStage

PAGE = 50
STATES = ("waiting", "open", "done")
SAID, ERROR = "manage.said", "manage.error"


def draw(project: Project, who: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        stages = list(project.stages)
        stage: WorkStage = st.segmented_control(
            "Stage", stages, default=stages[0], required=True, format_func=lambda s: STAGES[s], key=f"manage.stage.{project.id}"
        )
        state = st.selectbox("State", ["all", *STATES], key="manage.state", width=160)
        text = st.text_input("Words in the question", key="manage.text", type="search", max_chars=200)
    page = int(st.session_state.get("manage.page", 1))
    found = _shared.store().items(
        project.id,
        who,
        stage=stage,
        state=None if state == "all" else state,
        text=text or "",
        limit=PAGE + 1,
        offset=(page - 1) * PAGE,
    )
    if not found:
        st.info("No item fits." if page == 1 else "No more items.")
    else:
        _table(found[:PAGE], project, stage, who)
    if len(found) > PAGE or page > 1:
        st.pagination(page + (len(found) > PAGE), key="manage.page")
    add_questions(project, who)


def _table(found: list[ItemSummary], project: Project, stage: WorkStage, who: str) -> None:
    rows = pd.DataFrame(
        {
            "no.": [i.position + 1 for i in found],
            "question": [i.question for i in found],
            "state": ["qualification" if i.gold else i.state for i in found],
            "submitted": [str(i.submitted) if i.gold else f"{i.submitted} of {i.slots}" for i in found],
            "open with": [i.leased for i in found],
            "over": [i.over for i in found],
            "margin": [i.margin for i in found],
            "disagreement": [i.disagreement for i in found],
        }
    )
    chosen = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="single-row",
        key=f"manage.items.{project.id}.{stage}",
        column_config={"question": st.column_config.TextColumn(width="large")},
        alt="Items of the project in the order of the queue",
    )
    st.caption(
        "Choose a row to see what was submitted. Margin: how close the model's last decision was; small means uncertain."
    )
    places = chosen["selection"]["rows"] if chosen else []
    if places and places[0] < len(found):
        detail(found[places[0]], project, stage, who)


def detail(item: ItemSummary, project: Project, stage: WorkStage, who: str) -> None:
    st.markdown(f"**{plain(item.question)}**")
    st.page_link(
        "pages/annotate.py",
        label="Open it as an annotator",
        icon=":material/edit_note:",
        query_params={"project": project.id, "stage": stage, "item": item.id},
    )
    sent = _shared.store().submissions(project.id, who, stage=stage, item=item.id)
    if not sent:
        st.caption("Nothing is submitted yet.")
    for submission in sent:
        _submission(submission, stage, who)


def _submission(submission: Submission, stage: WorkStage, who: str) -> None:
    with st.container(border=True):
        counted = "" if submission.counted else " :gray-badge[does not count]"
        st.markdown(
            f"**{plain(submission.annotator)}**{counted} :gray[{submission.created.astimezone():%Y-%m-%d %H:%M} · "
            f"{submission.seconds / 60:.1f} min · {len(submission.log.viewed_passage_ids)} passages opened]"
        )
        content = submission.content
        if isinstance(content, JudgingWork):
            said = [f"{a.position + 1}: {a.verdict}" for a in content.answers]
            st.markdown(plain("; ".join(said)))
            if content.missing:
                st.caption("Missing: " + plain("; ".join(m.text for m in content.missing)))
        else:
            draw_annotation(content.annotation, submission.question)
            for warning in content.warnings:
                st.caption(f":orange[{plain(warning)}]")
        if content.note:
            st.caption(f"Note: {plain(content.note)}")
        if not submission.gold and not submission.automatic:
            key = f"manage.return.{submission.id}"
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.text_input("Send back with this reason", key=f"{key}.reason", max_chars=500)
                st.button("Send back", key=key, on_click=_return, args=(submission, stage, who, f"{key}.reason"))


def _return(submission: Submission, stage: WorkStage, who: str, key: str) -> None:
    reason = str(st.session_state.get(key) or "").strip()
    try:
        _shared.store().return_item(submission.item, submission.annotator, stage, reason, who)
        st.session_state[SAID] = f"Sent back to {submission.annotator}."
    except AmbiscopeError as error:
        st.session_state[ERROR] = error


def add_questions(project: Project, who: str) -> None:
    with st.expander("Add questions"):
        st.file_uploader(
            "Question file",
            type=importing.KINDS,
            max_upload_size=_shared.settings().max_upload_mb,
            key="manage.more",
            help="AmbigNQ light JSON, or JSON lines with question and answers",
        )
        st.checkbox(
            "They are qualification items: their annotations are the right answers, shown after submitting",
            key="manage.more.gold",
        )
        st.button("Add them", key="manage.more.add", on_click=_add, args=(project, who))


def _add(project: Project, who: str) -> None:
    file = st.session_state.get("manage.more")
    try:
        if file is None:
            raise InputError("no file was chosen; choose a question file first")
        _shared.store().require(who, "manager")
        with importing.on_disk(file) as path:
            questions = importing.read(path, file.name)
        gold = bool(st.session_state.get("manage.more.gold"))
        report = _shared.store().add_items(who, project.id, questions, gold=gold)
        st.session_state[SAID] = importing.said(report.added, report.known, report.linked)
    except AmbiscopeError as error:
        st.session_state[ERROR] = error
