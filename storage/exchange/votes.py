"""Reads people's contributions from the database, question by question: votes and annotations.

Streamed in chunks of questions, so that memory does not grow with the database.  A vote is a label of a predicted answer, an answer that
a judge missed, or a suggestion that an annotator rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, get_args

from sqlalchemy import Select, exists, func, select
from sqlalchemy.orm import Session

from storage.exchange.consensus import ContributedQuestion, Statement, Vote, agreement_of
from storage.exchange.filters import STAGES, Filters
from storage.exchange.final_answers import FinalSets, outcome_of
from storage.records.enumerations import Stage
from storage.results.standing import (
    AnnotationRecord,
    LabelRecord,
    annotated,
    chunked,
    filed,
    judged,
    labelled,
    submitted,
    written,
)
from storage.schema import tables, workbench

_Q = TypeVar("_Q", bound=Select[*tuple[Any, ...]])

CHUNK_QUESTIONS = 200  # questions in memory at a time


def chunks(session: Session, filters: Filters) -> Iterator[dict[int, ContributedQuestion]]:
    """Questions by chunk, in the order in which they were added, with or without contributions; their votes and statements
    aren't filled in yet."""
    q = tables.Question
    query = of_project(select(q.id, q.public_id, q.text), q.id, filters).order_by(q.id)
    for chunk in session.execute(query.execution_options(yield_per=CHUNK_QUESTIONS)).partitions():
        yield {row.id: ContributedQuestion(row.id, row.public_id, row.text) for row in chunk}


def contributed_questions(
    session: Session, filters: Filters, counts: Counter[str] | None = None
) -> Iterator[ContributedQuestion]:
    """Every question that somebody judged or annotated, in the order in which it was added.  For an export of final answers
    (with its `counts`) they come with them."""
    for chunk in chunks(session, filters):
        _collect(session, chunk, filters, counts)
        before = chunk
        if filters.minimum_agreement is not None and "validation" in filters.stages:  # people agree before validation
            before = {key: ContributedQuestion(key, question.public_id, question.text) for key, question in chunk.items()}
            _collect(session, before, replace(filters, stages=(*filters.stages, "generation")))
        for key, question in chunk.items():
            if not question.votes and not question.statements and not question.finals:
                continue
            if filters.minimum_agreement is not None:
                agreement = agreement_of(before[key].votes, before[key].statements)
                if agreement is None or agreement < filters.minimum_agreement:
                    if counts is not None:
                        counts["questions_below_agreement"] += 1
                    continue
            yield question


def _collect(
    session: Session, chunk: dict[int, ContributedQuestion], filters: Filters, counts: Counter[str] | None = None
) -> None:
    """Adds people's contributions to the questions."""
    collected = contributions(session, list(chunk), filters, counts)
    for key, question in chunk.items():
        question.finals = collected.outcome.finals.get(key, [])
        question.is_written = key in collected.outcome.written
    for label in collected.labels:
        answer = label.answer
        cited = tuple(dict.fromkeys(e["passage_id"] for e in answer.evidence))
        value = label.label or ""
        vote = Vote(label.annotator, answer.text, answer.clarified or "", value, label.updated, passage_ids=cited)
        chunk[answer.question_id].votes.append(vote)
    for entry in collected.annotations:
        chunk[entry.question].statements.append(Statement(entry.annotator, entry.stage, entry.annotation))
    _add_sheets(session, chunk, collected.work, filters)


@dataclass(frozen=True, slots=True)
class Contributions:
    """The counted contributions to some questions that pass the filters.  `work`: rows of storage.results.standing.submitted; `outcome`: of an
    export of final answers."""

    work: list[Any]
    annotations: list[AnnotationRecord]
    labels: list[LabelRecord]
    outcome: FinalSets


def contributions(
    session: Session, questions: Sequence[int], filters: Filters, counts: Counter[str] | None = None
) -> Contributions:
    """The contributions that count, which is decided before the filters: a replaced contribution stays replaced.  `counts`: an
    export's."""
    work, stages = submitted(session, questions), set(filters.stages or STAGES)
    annotations = annotated(session, questions, work) if stages & set(get_args(Stage)) else []
    labels = labelled(session, questions, work) if "judging" in stages else []
    outcome = FinalSets()
    if counts is not None and filters.answers == "final" and stages & set(get_args(Stage)):
        outcome = outcome_of(session, questions, annotations, filters, counts)
    return Contributions(
        _matching(work, filters),
        [a for a in annotations if _passes(filters, a.annotator, a.stage, a.updated)],
        [
            v
            for v in labels
            if v.counts and filters.system in ("", v.answer.system) and _passes(filters, v.annotator, "judging", v.updated)
        ],
        outcome,
    )


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """An answer set with `counts`, which is False if it was late, returned or reopened, or if its author answered the question
    again elsewhere."""

    record: AnnotationRecord
    counts: bool


def every_answer_set(session: Session, questions: Sequence[int], filters: Filters) -> list[WrittenRecord]:
    """Everybody's answer sets that pass the filters, each in its latest version, by question, stage, then person."""
    counted = {_identity(record) for record in annotated(session, questions, submitted(session, questions))}
    entries = [
        WrittenRecord(record, _identity(record) in counted) for record in filed(session, questions) if not filters.project
    ]
    for entry in written(session, questions):
        if filters.project in ("", entry.project):
            fields = (entry.question, entry.annotator, entry.order, entry.stage, entry.annotation, entry.version)
            record = AnnotationRecord(*fields, entry.began, entry.created, in_project=True)
            entries.append(WrittenRecord(record, entry.holds_slot and (entry.automatic or _identity(record) in counted)))
    passing = [e for e in entries if _passes(filters, e.record.annotator, e.record.stage, e.record.updated)]
    return sorted(passing, key=lambda e: (e.record.question, STAGES.index(e.record.stage), e.record.order, e.record.updated))


def _identity(record: AnnotationRecord) -> tuple[Any, ...]:
    return record.question, record.order, record.stage, record.in_project, record.updated


def sheets(session: Session, questions: Sequence[int], filters: Filters) -> list[Any]:
    """Submissions of the judging stage, as rows of storage.results.standing.submitted."""
    return [row for row in _matching(submitted(session, questions), filters) if row.stage == "judging"]


def _matching(work: Sequence[Any], filters: Filters) -> list[Any]:
    """The submissions that pass the filters, a project's own if one is named."""
    return [w for w in work if filters.project in ("", w.project) and _passes(filters, w.name, w.stage, w.created)]


def _passes(filters: Filters, name: str, stage: str, time: datetime) -> bool:
    return (
        (not filters.annotators or name in filters.annotators)
        and (not filters.stages or stage in filters.stages)
        and (filters.since is None or time >= filters.since)
        and (filters.until is None or time < filters.until)
    )


def _add_sheets(session: Session, chunk: dict[int, ContributedQuestion], work: Sequence[Any], filters: Filters) -> None:
    """Adds missing answers and rejected suggestions, and removes the disambiguated questions that a judge called unfit from
    their votes."""
    unfit: dict[tuple[int, str], set[tuple[str, int]]] = {}
    for row in work:
        votes = chunk[row.question_id].votes
        for missing in row.body.get("missing", ()):
            aliases = tuple(missing.get("aliases", ()))
            votes.append(Vote(row.name, missing["text"], "", "correct", row.created, aliases))
        for use in row.body.get("suggestions", ()):
            if use["action"] == "rejected" and not filters.system:
                votes.append(Vote(row.name, use["text"], "", "wrong", row.created, soft=True))
        for sheet in row.body.get("answers", ()):
            if sheet.get("question") not in (None, "fits"):
                unfit.setdefault((row.question_id, row.name), set()).add((sheet["prediction_id"], sheet["position"]))
    if not unfit:
        return
    rows = session.execute(
        select(tables.Prediction.public_id, tables.PredictedAnswer.position, tables.PredictedAnswer.clarified)
        .join(tables.PredictedAnswer, tables.PredictedAnswer.prediction_id == tables.Prediction.id)
        .where(tables.Prediction.public_id.in_({public_id for answers in unfit.values() for public_id, _ in answers}))
    ).all()
    questions = {(public_id, position): clarified for public_id, position, clarified in rows if clarified}
    for (question, name), answers in unfit.items():
        bad = {questions[answer] for answer in answers if answer in questions}
        votes = chunk[question].votes
        votes[:] = [replace(v, clarified="") if v.annotator == name and v.clarified in bad else v for v in votes]


def of_project(query: _Q, question: Any, filters: Filters) -> _Q:
    """Restricts a query to the project's questions.  Gold items aren't data."""
    if not filters.project:
        return query
    item = workbench.ProjectItem
    return query.where(
        exists().where(
            item.question_id == question,
            item.gold.is_(None),
            item.project_id == select(workbench.Project.id).filter_by(public_id=filters.project).scalar_subquery(),
        )
    )


def dated(query: _Q, column: Any, filters: Filters) -> _Q:
    """Restricts a query to rows whose time is within `since` and `until`."""
    if filters.since is not None:
        query = query.where(column >= filters.since)
    return query.where(column < filters.until) if filters.until is not None else query


def latest_labels(session: Session, filters: Filters, limit: int) -> tuple[list[LabelRecord], bool]:
    """The labels of at most `limit` answers to the questions that were judged last, and whether others were left out."""
    times = judged().c
    query = of_project(select(times.question_id), times.question_id, filters).group_by(times.question_id)
    ids = session.scalars(query.order_by(func.max(times.updated).desc(), times.question_id)).all()
    labels: list[LabelRecord] = []
    for chunk in chunked(ids):
        labels += contributions(session, chunk, replace(filters, stages=("judging",))).labels
        answers = list(dict.fromkeys(label.answer.id for label in labels))
        if len(answers) > limit:
            answer_ids = set(answers[:limit])
            return [label for label in labels if label.answer.id in answer_ids], True
    return labels, False
