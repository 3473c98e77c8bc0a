"""A project's items: table with states and filters, the submissions of one item, returning work, adding questions."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import pandas as pd
import streamlit as st
from streamlit.elements.arrow import DataframeState

from core.annotating.aliases import join_aliases
from core.errors import AmbiscopeError
from core.text import listed, time_text
from core.types import Prediction
from pages.manage import assignments, gold_form, question_upload
from pages.manage import selection as several
from pages.session import comments, shared
from pages.session.actions import reported, say
from pages.ui.markup import changes, escape, full_label
from pages.ui.stages import STAGES, draw_annotation
from pages.ui.tables import csv_button, fitted
from storage.records.annotation import JudgedAnswer, JudgingWork, Submission
from storage.records.enumerations import ItemState, WorkStage
from storage.records.projects import ItemSummary, Project

ITEMS_PER_PAGE = 50
COLUMN_HELP = {  # of columns that are left out where they are empty
    "Extra": "Extra: submitted after enough people had finished the item.",
    "Margin": "Margin: how close the model's last decision was; a small margin means uncertain.",
    "Domain": "Domain: as the file of questions has it.",
    "Assigned": "Assigned: the people whom the item is given to first.",
    "Comments": "Comments: read and answer them below a selected row.",
    "Disagreement": "Disagreement: 0 (the same answers) to 1 (no answer in common).",
}
STATES = get_args(ItemState)
LABEL_COLOURS = {
    "correct": "green",
    "wrong": "red",
    "unsupported": "orange",
    "duplicate": "gray",
    "outdated": "orange",
    "contradicts": "violet",
}
QUESTION_BADGES = {
    "fits": "green-badge[question fits]",
    "ambiguous_still": "orange-badge[question still ambiguous]",
    "changes_meaning": "red-badge[question changes the meaning]",
}
FILE, IS_OPEN, ADD_ERROR = "manage.more", "manage.more.open", "manage.more.refused"


def draw(project: Project, user: str) -> None:
    comments.draw_new(project.id, user)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        stages = list(project.stages)
        stage: WorkStage = stages[0]
        if len(stages) > 1:
            stage = st.segmented_control(
                "Stage", stages, default=stage, required=True, format_func=lambda s: STAGES[s], key=f"manage.stage.{project.id}"
            )
        state = st.selectbox("State", ["any", *STATES], format_func=str.capitalize, key="manage.state", width=160)
        text = st.text_input("Search the questions", key="manage.text", type="search", max_chars=200)
    page_key = f"manage.page.{project.id}.{stage}.{state}.{text}"  # another choice begins with its first page
    page = int(st.session_state.get(page_key, 1))
    summaries = shared.store().items.items(
        project.id,
        user,
        stage=stage,
        state=None if state == "any" else state,
        text=text or "",
        limit=ITEMS_PER_PAGE + 1,
        offset=(page - 1) * ITEMS_PER_PAGE,
    )
    if not summaries:
        st.info("No item matches." if page == 1 else "No more items.")
    else:
        _table(summaries[:ITEMS_PER_PAGE], project, stage, user)
    if len(summaries) > ITEMS_PER_PAGE or page > 1:
        st.pagination(page + (len(summaries) > ITEMS_PER_PAGE), key=page_key)
    assignments.assign(project, stage, user)
    _add_questions(project, user)
    if stages != ["validation"]:  # which has no gold items
        gold_form.draw(project, user)


def _table(summaries: list[ItemSummary], project: Project, stage: WorkStage, user: str) -> None:
    unanswered: Collection[str] = ()
    if stage == "judging":
        unanswered = shared.store().intake.unanswered(user, project.id, [i.id for i in summaries])
    rows = [
        {
            "No.": i.position + 1,
            "Question": i.question,
            "State": "gold" if i.gold else "no prediction" if i.id in unanswered else i.state,
            "Submitted": str(i.submitted) if i.gold else f"{i.submitted} of {i.slots}",
            "Domain": i.domain,
            "Assigned": ", ".join(i.assigned),
            "Comments": str(i.comments) if i.comments else "",
            "In progress": i.leased,
            "Extra": str(i.over) if i.over else "",
            "Margin": i.margin,
            "Disagreement": i.disagreement,
        }
        for i in summaries
    ]
    # columns that say nothing would push the others out of sight
    frame = pd.DataFrame(rows).drop(columns=[name for name in COLUMN_HELP if all(row[name] in (None, "") for row in rows)])
    key = f"manage.items.{project.id}.{stage}"
    selection = st.dataframe(
        frame,
        hide_index=True,
        width="stretch",
        on_select="rerun",
        selection_mode="multi-row",
        key=key,
        column_config=fitted([{name: row[name] for name in frame} for row in rows], longest=360),
        alt="Items of the project, in queue order",
    )
    csv_button(frame, "items", "manage.csv.items")
    help = [text for name, text in COLUMN_HELP.items() if name in frame]
    st.caption(" ".join(["Select a row to see what was submitted, or several to assign, reopen or remove them.", *help]))
    items = [summaries[index] for index in selected(selection) if index < len(summaries)]
    if items:
        several.draw(project, stage, user, items, key)
    if len(items) == 1:
        _detail(items[0], project, stage, user)


def selected(state: DataframeState) -> list[int]:
    """The positions of the rows that are selected in a table, in order."""
    return sorted(state["selection"]["rows"]) if state else []


def _detail(item: ItemSummary, project: Project, stage: WorkStage, user: str) -> None:
    st.markdown(f"**{escape(item.question)}**")
    st.page_link(
        "pages/annotate/page.py",
        label="Open as an annotator",
        icon=":material/edit_note:",
        query_params={"project": project.id, "stage": stage, "item": item.id},
    )
    submissions = shared.store().submissions.submissions(project.id, user, stage=stage, item=item.id)
    comments.draw(item.id, user)
    if not submissions:
        st.caption("Nothing has been submitted yet.")
    for submission in submissions:
        _submission(submission, stage, user)


def _submission(submission: Submission, stage: WorkStage, user: str) -> None:
    with st.container(border=True):
        badge = "" if submission.counted else " :gray-badge[does not count]"
        st.markdown(
            f"**{escape(submission.annotator)}**{badge} :gray[{time_text(submission.created)} · "
            f"{submission.seconds / 60:.1f} min · {listed(len(submission.log.viewed_passage_ids), 'passage')} opened]"
        )
        content = submission.content
        if isinstance(content, JudgingWork):
            _judgments(submission, content, user)
        else:
            draw_annotation(content.annotation, submission.question)
            for warning in content.warnings:
                st.caption(f":orange[{escape(warning)}]")
        if content.note:
            st.caption(f"Note: {escape(content.note)}")
        if not submission.automatic:
            key = f"manage.return.{submission.id}"
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.text_input(
                    f"Reason for sending it back to {escape(submission.annotator)}", key=f"{key}.reason", max_chars=500
                )
                st.button(
                    full_label("Send back", f"the work of {submission.annotator}"),
                    key=key,
                    on_click=_return,
                    args=(submission, stage, user, f"{key}.reason"),
                )


def _judgments(submission: Submission, content: JudgingWork, user: str) -> None:
    store = shared.store()
    ids = [p.prediction_id for p in store.items.get_item(submission.item, user).predictions]  # in the order of the systems
    ids += sorted({a.prediction_id for a in content.answers} - set(ids))
    predictions = {i: row.prediction for i in ids if (row := store.predictions.find_prediction(i)) is not None}
    answers = sorted(content.answers, key=lambda a: a.position)
    for prediction_id, prediction in predictions.items():
        if len(predictions) > 1:
            badge = " :blue-badge[preferred]" if prediction_id == content.preferred else ""
            st.markdown(f"Answers of **{escape(prediction.system.name)}**{badge}")
        if not prediction.answers:
            st.caption("The system found no answer.")
        lines = [_line(a, prediction, submission.question) for a in answers if a.prediction_id == prediction_id]
        st.markdown("\n".join(lines))
    if deleted := [a for a in answers if a.prediction_id not in predictions]:
        st.markdown("\n".join(_line(a, None, submission.question) for a in deleted))
    if content.preference == "tie":
        st.caption("Both sets are equally good.")
    if content.missing:
        st.markdown("**Missing answers**")
        st.markdown("\n".join(f"- {escape(join_aliases((m.text, *m.aliases)))}" for m in content.missing))


def _line(answer: JudgedAnswer, prediction: Prediction | None, prompt: str) -> str:
    """An entry of a list."""
    name, clarification = "an answer that is not stored", None
    if prediction is not None and answer.position < len(prediction.answers):
        name = prediction.answers[answer.position].text
        clarification = prediction.clarification_of(name)
    parts = [f"{answer.position + 1}. **{escape(name)}** :{LABEL_COLOURS[answer.verdict]}-badge[{escape(answer.verdict)}]"]
    parts[0] += "".join(f" :orange-badge[{escape(label)}]" for label in answer.errors)
    if answer.question is not None:
        parts[0] += f" :{QUESTION_BADGES[answer.question]}"
    if clarification is not None and clarification.question:
        parts.append(changes(prompt, clarification.question))
    if answer.note:
        parts.append(f":gray[Note: {escape(answer.note)}]")
    return "  \n   ".join(parts)


@reported
def _return(submission: Submission, stage: WorkStage, user: str, key: str) -> None:
    reason = str(st.session_state.get(key) or "").strip()
    shared.store().returns.return_item(submission.item, submission.annotator, stage, reason, user)
    say(f"Sent back to {submission.annotator}.")


def _add_questions(project: Project, user: str) -> None:
    # with a key and a state: without, it closes whenever something above appears or disappears
    with st.expander("Add questions", key=IS_OPEN, on_change="rerun"):
        question_upload.uploader(FILE)
        st.checkbox(
            "Gold items",
            key="manage.more.gold",
            help="Their annotations are the right answers. Gold items look like all others, and their results are on Quality.",
        )
        if error := st.session_state.pop(ADD_ERROR, None):
            shared.show_error(error)
        st.button("Add questions", key="manage.more.add", on_click=_add, args=(project, user))


def _add(project: Project, user: str) -> None:
    state = st.session_state
    try:
        shared.store().people.require(user, "manager")
        questions = question_upload.questions(FILE)
        report = shared.store().intake.add_items(user, project.id, questions, gold=bool(state.get("manage.more.gold")))
        say(question_upload.summary(report))
        state[IS_OPEN] = False
        question_upload.discard(FILE)
    except AmbiscopeError as error:
        state[ADD_ERROR], state[IS_OPEN] = error, True
