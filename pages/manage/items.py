"""The items of a project: table with states and filters, what was submitted for one, sending work back, more questions."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.elements.arrow import DataframeState

from core.errors import AmbiscopeError
from pages.annotate.stage_info import STAGES, draw_annotation
from pages.manage import judgments, question_upload
from pages.session import shared
from pages.ui.markup import escape, named
from storage.records.annotation import JudgingWork, Submission
from storage.records.enumerations import WorkStage
from storage.records.projects import ItemSummary, Project

PAGE = 50
WIDTHS = {
    "No.": 50,
    "Question": 300,
    "State": 105,
    "Submitted": 90,
    "In progress": 85,
    "Extra": 60,
    "Margin": 75,
    "Disagreement": 110,
}
ABOUT = {
    "Extra": "Extra: submitted after enough people had done the item.",
    "Margin": "Margin: how close the model's last decision was; a small margin means uncertain.",
    "Disagreement": "Disagreement: 0 (the same answers) to 1 (no answer in common).",
}
STATES = ("waiting", "open", "done")
MESSAGE, ERROR = "manage.said", "manage.error"
FILE, ADDING, REFUSED = "manage.more", "manage.more.open", "manage.more.refused"


def draw(project: Project, who: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        stages = list(project.stages)
        stage: WorkStage = st.segmented_control(
            "Stage", stages, default=stages[0], required=True, format_func=lambda s: STAGES[s], key=f"manage.stage.{project.id}"
        )
        state = st.selectbox("State", ["any", *STATES], format_func=str.capitalize, key="manage.state", width=160)
        text = st.text_input("Search the questions", key="manage.text", type="search", max_chars=200)
    page = int(st.session_state.get("manage.page", 1))
    found = shared.store().items.items(
        project.id,
        who,
        stage=stage,
        state=None if state == "any" else state,
        text=text or "",
        limit=PAGE + 1,
        offset=(page - 1) * PAGE,
    )
    if not found:
        st.info("No item matches." if page == 1 else "No more items.")
    else:
        _table(found[:PAGE], project, stage, who)
    if len(found) > PAGE or page > 1:
        st.pagination(page + (len(found) > PAGE), key="manage.page")
    add_questions(project, who)


def _table(found: list[ItemSummary], project: Project, stage: WorkStage, who: str) -> None:
    bare = shared.store().intake.unanswered(who, project.id, [i.id for i in found]) if stage == "judging" else frozenset()
    rows = pd.DataFrame(
        {
            "No.": [i.position + 1 for i in found],
            "Question": [i.question for i in found],
            "State": ["qualification" if i.gold else "no prediction" if i.id in bare else i.state for i in found],
            "Submitted": [str(i.submitted) if i.gold else f"{i.submitted} of {i.slots}" for i in found],
            "In progress": [i.leased for i in found],
            "Extra": [i.over for i in found],
            "Margin": [i.margin for i in found],
            "Disagreement": [i.disagreement for i in found],
        }
    )
    # columns that say nothing would push the others out of sight
    empty = [name for name in ("Margin", "Disagreement") if rows[name].isna().all()]
    empty += [] if rows["Extra"].any() else ["Extra"]
    rows = rows.drop(columns=empty)
    widths = WIDTHS | {"Question": WIDTHS["Question"] + sum(WIDTHS[name] for name in empty)}
    chosen = st.dataframe(
        rows,
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="single-row",
        key=f"manage.items.{project.id}.{stage}",
        column_config={name: st.column_config.Column(width=widths[name]) for name in rows},
        alt="Items of the project, in queue order",
    )
    more = [ABOUT[name] for name in ABOUT if name in rows]
    st.caption(" ".join(["Select a row to see what was submitted.", *more]))
    place = selected(chosen)
    if place is not None and place < len(found):
        detail(found[place], project, stage, who)


def selected(chosen: DataframeState) -> int | None:
    """The row of a table that is chosen."""
    places = chosen["selection"]["rows"] if chosen else []
    return places[0] if places else None


def detail(item: ItemSummary, project: Project, stage: WorkStage, who: str) -> None:
    st.markdown(f"**{escape(item.question)}**")
    st.page_link(
        "pages/annotate/page.py",
        label="Open as an annotator",
        icon=":material/edit_note:",
        query_params={"project": project.id, "stage": stage, "item": item.id},
    )
    sent = shared.store().submissions.submissions(project.id, who, stage=stage, item=item.id)
    if not sent:
        st.caption("Nothing has been submitted yet.")
    for submission in sent:
        _submission(submission, stage, who)


def _submission(submission: Submission, stage: WorkStage, who: str) -> None:
    with st.container(border=True):
        counted = "" if submission.counted else " :gray-badge[does not count]"
        st.markdown(
            f"**{escape(submission.annotator)}**{counted} :gray[{submission.created.astimezone():%Y-%m-%d %H:%M} · "
            f"{submission.seconds / 60:.1f} min · {len(submission.log.viewed_passage_ids)} passages opened]"
        )
        content = submission.content
        if isinstance(content, JudgingWork):
            judgments.draw(submission, content, who)
        else:
            draw_annotation(content.annotation, submission.question)
            for warning in content.warnings:
                st.caption(f":orange[{escape(warning)}]")
        if content.note:
            st.caption(f"Note: {escape(content.note)}")
        if not submission.gold and not submission.automatic:
            key = f"manage.return.{submission.id}"
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.text_input(
                    f"Reason for sending it back to {escape(submission.annotator)}", key=f"{key}.reason", max_chars=500
                )
                st.button(
                    named("Send back", f"the work of {submission.annotator}"),
                    key=key,
                    on_click=_return,
                    args=(submission, stage, who, f"{key}.reason"),
                )


def _return(submission: Submission, stage: WorkStage, who: str, key: str) -> None:
    reason = str(st.session_state.get(key) or "").strip()
    try:
        shared.store().returns.return_item(submission.item, submission.annotator, stage, reason, who)
        st.session_state[MESSAGE] = f"Sent back to {submission.annotator}."
    except AmbiscopeError as error:
        st.session_state[ERROR] = error


def add_questions(project: Project, who: str) -> None:
    # with a key and a state: without, it closes whenever something above appears or goes
    with st.expander("Add questions", key=ADDING, on_change="rerun"):
        question_upload.uploader(FILE)
        st.checkbox(
            "Use as qualification items: their annotations are the right answers, shown after people submit",
            key="manage.more.gold",
        )
        if error := st.session_state.pop(REFUSED, None):
            question_upload.show_upload_error(error)
        st.button("Add questions", key="manage.more.add", on_click=_add, args=(project, who))


def _add(project: Project, who: str) -> None:
    state = st.session_state
    try:
        shared.store().people.require(who, "manager")
        questions = question_upload.questions(FILE)
        report = shared.store().intake.add_items(who, project.id, questions, gold=bool(state.get("manage.more.gold")))
        state[MESSAGE] = question_upload.summary(report.added, report.known, report.linked)
        state[ADDING] = False
        question_upload.discard(FILE)
    except AmbiscopeError as error:
        state[REFUSED], state[ADDING] = error, True
