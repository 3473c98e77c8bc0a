"""The questions of one run, and one question in one or two runs: references, answers, errors, trace."""

from __future__ import annotations

import streamlit as st

from core.errors import AmbiscopeError
from core.text import probability_text
from core.types import SystemInfo
from pages.evaluate.charts import BUCKETS
from pages.session import run_source, shared
from pages.ui.formatting import format_score, seconds
from pages.ui.markup import distinct, escape
from pages.ui.tables import table
from pages.ui.trace import draw_trace
from storage.records.results import EvaluationRow, StoredEvaluation
from storage.results.evaluations import RowOrder

QUESTIONS_PER_PAGE = 25
ORDERS: dict[RowOrder, str] = {
    "position": "As in the file",
    "f1": "Lowest F1 first",
    "errors": "Most errors first",
    "slowest": "Slowest first",
}


def draw_rows(run: StoredEvaluation) -> None:
    """A page of a run's questions, with the chosen one in full below."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        order = st.selectbox("Order", list(ORDERS), format_func=lambda o: ORDERS[o], key=f"evaluate.order.{run.id}", width=220)
        bucket = st.selectbox(
            "Error",
            ["", *BUCKETS],
            format_func=lambda b: BUCKETS.get(b, "Any"),
            key=f"evaluate.bucket.{run.id}",
            width=280,
        )
        failed = st.checkbox("Failed questions only", key=f"evaluate.failed.{run.id}")
    evaluations, only_failed = run_source.store().evaluations, True if failed else None
    total = evaluations.count_evaluation_rows(run.id, bucket=bucket, failed=only_failed)
    if not total:
        st.info("No question of this run matches." if run.n else "This run was stored without its questions.")
        return
    pages = -(-total // QUESTIONS_PER_PAGE)
    page = st.pagination(pages, key=f"evaluate.page.{run.id}.{order}.{bucket}.{failed}") if pages > 1 else 1
    questions = evaluations.evaluation_rows(
        run.id, QUESTIONS_PER_PAGE, (page - 1) * QUESTIONS_PER_PAGE, order=order, bucket=bucket, failed=only_failed
    )
    rows = [
        {
            "question": r.question,
            "id": r.question_id,
            "answers": r.answers,
            "references": r.references,
            **{name: r.errors[key] for key, name in BUCKETS.items()},
            "seconds": r.seconds,
            "failed": r.error or "",
        }
        for r in questions
    ]
    caption = (
        f"Questions {(page - 1) * QUESTIONS_PER_PAGE + 1} to {(page - 1) * QUESTIONS_PER_PAGE + len(questions)} of {total:,}"
    )
    columns = {
        "seconds": st.column_config.NumberColumn(format="%.2f"),
        "question": st.column_config.TextColumn(width="large"),
    }
    table(rows, caption, columns=columns, csv_name="questions")
    st.caption(caption)
    texts = distinct({r.question_id: r.question for r in questions}, 100)
    question_id = st.selectbox(
        "Show a question",
        list(texts),
        index=None,
        format_func=lambda key: texts.get(key, str(key)),
        key=f"evaluate.question.{run.id}",
    )
    if question_id:
        question(run.id, str(question_id))


def question(run_id: str, question_id: str) -> None:
    """One question of a run: references, answers, metrics, and its trace if the run kept one."""
    row = run_source.store().evaluations.evaluation_row(run_id, question_id)
    with st.container(border=True):
        st.markdown(f"**{escape(row.question)}**")
        for number, pairs in enumerate(row.body.get("references") or [], 1):
            answers = "; ".join(" / ".join(map(str, aliases)) for aliases in pairs)
            label = "References" if len(row.body["references"]) == 1 else f"References {number}"
            st.caption(f"{label}: {escape(answers) or 'no answer'}")
        if row.error is not None:
            st.error(escape(row.error), icon=":material/error:")
            return
        settings = run_source.store().evaluations.evaluation_report(run_id).get("provenance", {}).get("settings") or {}
        _answers(row, SystemInfo("", settings).is_calibrated)
        values = row.body.get("metrics") or {}
        st.caption(" · ".join(f"{escape(m)} {format_score(m, v)}" for m, v in values.items() if v is not None))
        wrong = [f"{BUCKETS[name]} {count}" for name, count in row.errors.items() if count]
        if wrong:
            st.caption(f"Errors: {escape(', '.join(wrong))}")
        _trace(run_id, question_id)


def _answers(row: EvaluationRow, is_calibrated: bool) -> None:
    answers = row.body.get("answers") or []
    if not answers:
        st.markdown("No answer was given.")
    for answer in answers:
        chance = answer.get("probability")
        badge = f" :gray-badge[{probability_text(chance, is_calibrated)}]" if isinstance(chance, int | float) else ""
        st.markdown(f"- **{escape(answer.get('text', ''))}**{badge}")
        if answer.get("question"):
            st.caption(escape(answer["question"]))
    if row.seconds is not None:
        st.caption(seconds(row.seconds))


def _trace(run_id: str, question_id: str) -> None:
    try:
        prediction = run_source.trace(run_id, question_id)
    except AmbiscopeError as error:
        shared.show_error(error)
        return
    if prediction is None:
        st.caption(
            "This run has no traces. To see each step, evaluate with --traces, or turn on Save traces under Start and store."
        )
        return
    draw_trace(prediction)
