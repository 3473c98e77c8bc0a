"""Counted contributions, whatever their source: submitted in a project, labelled on Explore, or read from a file.

Submitted work is in `submission` alone.  It counts while its task is submitted and holds a slot: returned, reopened and surplus work,
gold items and automatic validations do not count.  Of one person's contributions to the same question and stage, or labels of the same
answer, the latest counts, be it in two projects or in a project and elsewhere.  A label that was cleared on Explore, or turned into a
draft there, is a later label like another: the project's label does not count then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, get_args

from sqlalchemy import JSON, ColumnElement, Row, Select, and_, cast, func, literal, select, true, type_coerce, union_all
from sqlalchemy.orm import Session, aliased

from core.trace import from_json
from core.types import Annotation, QAPair
from storage.records.enumerations import Stage
from storage.records.projects import MIXED_SLOTS
from storage.schema import tables, workbench

CHUNK_VALUES = 500  # values of one statement
T = TypeVar("T")
_Work = Row[Any]


@dataclass(frozen=True, slots=True)
class AnnotationRecord:
    """The answer set of one person for one question at one stage.  `version`: in its project or file; `created`: of its first version."""

    question: int  # its row
    annotator: str
    order: int  # of the person, among all
    stage: str
    annotation: Annotation
    version: int
    created: datetime
    updated: datetime
    in_project: bool = False  # submitted there, not out of a file
    guidelines: int | None = None  # version that was shown; 0: there were none; None: out of a file


@dataclass(frozen=True, slots=True)
class WrittenSet:
    """The latest version of one person's answer set in a project, whether it counts or not.  `began`: when its first version was submitted."""

    question: int  # its row
    item: int  # its row
    project: str
    stage: str
    annotator: str
    order: int  # of the person, among all
    slot: int | None
    state: str  # of the task
    automatic: bool
    annotation: Annotation
    version: int
    began: datetime
    created: datetime

    @property
    def holds_slot(self) -> bool:
        """Whether it was submitted in time and neither returned nor reopened."""
        return self.state == "submitted" and self.slot is not None


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """One person's label of one predicted answer.  `answer` has question_id, question (its text), prediction, system, corpus,
    corpus_digest, position, text, clarified, probability, passed, evidence."""

    answer: Any
    annotator: str
    order: int
    label: str | None
    note: str
    state: str  # submitted; draft or skipped: only on Explore
    version: int  # how often the person labelled it, on Explore and in projects
    created: datetime
    updated: datetime
    errors: tuple[str, ...] = ()  # error labels of the project

    @property
    def counts(self) -> bool:
        return self.state == "submitted"


def is_current_submission() -> ColumnElement[bool]:
    """Joins tasks with submissions: the task's current one."""
    task, submission = workbench.Task, workbench.Submission
    return and_(
        submission.item_id == task.item_id,
        submission.stage == task.stage,
        submission.annotator_id == task.annotator_id,
        submission.version == task.version,
    )


def counted_submissions(*columns: Any) -> Select[Any]:
    """The one query of submissions that count."""
    submission, task, item = workbench.Submission, workbench.Task, workbench.ProjectItem
    query = (
        select(*columns).select_from(submission).join(task, is_current_submission()).join(item, item.id == submission.item_id)
    )
    query = query.where(item.gold.is_(None), task.state == "submitted", task.slot.is_not(None))
    return query.where(submission.automatic == False)  # noqa: E712  (bound as 0: PostgreSQL's column is a number)


def submitted(session: Session, questions: Sequence[int]) -> Sequence[_Work]:
    """Rows (question_id, project, item, stage, name, annotator_id, body, version, guidelines, created, began) of submissions that count, by id."""
    submission, item, first = workbench.Submission, workbench.ProjectItem, aliased(workbench.Submission)
    same_task = (
        first.item_id == submission.item_id,
        first.stage == submission.stage,
        first.annotator_id == submission.annotator_id,
    )
    query = (
        counted_submissions(
            item.question_id,
            workbench.Project.public_id.label("project"),
            item.public_id.label("item"),
            submission.stage,
            tables.Annotator.name,
            submission.annotator_id,
            submission.body,
            submission.version,
            submission.guidelines,
            submission.created,
            first.created.label("began"),
        )
        .join(workbench.Project, workbench.Project.id == submission.project_id)
        .join(tables.Annotator, tables.Annotator.id == submission.annotator_id)
        .join(first, and_(*same_task, first.version == 1))
        .where(item.question_id.in_(questions))
        .order_by(submission.id)
    )
    return session.execute(query).all()


def written(session: Session, questions: Sequence[int]) -> list[WrittenSet]:
    """Everybody's answer sets in projects, including automatic validations, by item, stage, then slot; late work last.  Gold
    items are left out."""
    submission, task, item, first = workbench.Submission, workbench.Task, workbench.ProjectItem, aliased(workbench.Submission)
    key = (first.item_id == task.item_id, first.stage == task.stage, first.annotator_id == task.annotator_id)
    query = (
        select(
            item.question_id,
            item.id.label("item"),
            workbench.Project.public_id.label("project"),
            task.stage,
            tables.Annotator.name,
            task.annotator_id,
            task.slot,
            task.state,
            submission.automatic,
            submission.body,
            task.version,
            first.created.label("began"),
            submission.created,
        )
        .select_from(task)
        .join(submission, is_current_submission())
        .join(first, and_(*key, first.version == 1))
        .join(item, item.id == task.item_id)
        .join(workbench.Project, workbench.Project.id == item.project_id)
        .join(tables.Annotator, tables.Annotator.id == task.annotator_id)
        .where(item.question_id.in_(questions), item.gold.is_(None), task.stage.in_(get_args(Stage)))
        .order_by(item.id, task.stage, func.coalesce(task.slot, MIXED_SLOTS), submission.id)
    )
    return [
        WrittenSet(
            row.question_id,
            row.item,
            row.project,
            row.stage,
            row.name,
            row.annotator_id,
            row.slot,
            row.state,
            row.automatic,
            from_json(Annotation, row.body["annotation"]),
            row.version,
            row.began,
            row.created,
        )
        for row in session.execute(query)
        if row.automatic is False or row.state == "submitted"  # an automatic validation that was taken back is nobody's work
    ]


def filed(session: Session, questions: Sequence[int]) -> list[AnnotationRecord]:
    """The submitted answer sets from files."""
    a = tables.Annotation
    query = (
        select(a, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == a.annotator_id)
        .where(a.state == "submitted", a.question_id.in_(questions))
    )
    rows = session.execute(query).all()
    pairs = pairs_of(session, [row.id for row, _ in rows])
    return [
        _annotation_record(row, name, Annotation(row.type, pairs.get(row.id, ())), row.created, row.updated)  # type: ignore[arg-type]
        for row, name in rows
    ]


def annotated(session: Session, questions: Sequence[int], work: Iterable[_Work]) -> list[AnnotationRecord]:
    """The answer sets that count, by person, then stage.  `work`: the result of `submitted` for these questions."""
    annotations = filed(session, questions)
    for row in work:
        if row.stage in get_args(Stage):
            record = _annotation_record(row, row.name, from_json(Annotation, row.body["annotation"]), row.began, row.created)
            annotations.append(replace(record, in_project=True, guidelines=row.guidelines))
    latest = {
        (entry.question, entry.order, entry.stage): entry for entry in sorted(annotations, key=lambda entry: entry.updated)
    }
    return [latest[key] for key in sorted(latest)]


def _annotation_record(row: Any, name: str, annotation: Annotation, created: datetime, updated: datetime) -> AnnotationRecord:
    return AnnotationRecord(row.question_id, name, row.annotator_id, row.stage, annotation, row.version, created, updated)


def labelled(session: Session, questions: Sequence[int], work: Iterable[_Work]) -> list[LabelRecord]:
    """Each person's latest label, by prediction, position and person, including drafts on Explore. `work` as in
    `annotated`."""
    answer, prediction = tables.PredictedAnswer, tables.Prediction
    on_explore = [row for table in (tables.Judgment, tables.JudgmentRevision) for row in _on_explore(session, table, questions)]
    sheets = [(row, entry) for row in work if row.stage == "judging" for entry in row.body["answers"]]
    query = (
        select(
            answer.id,
            prediction.question_id,
            tables.Question.text.label("question"),
            prediction.id.label("number"),
            prediction.public_id.label("prediction"),
            prediction.system,
            prediction.corpus,
            prediction.corpus_digest,
            answer.position,
            answer.text,
            answer.clarified,
            answer.probability,
            answer.passed,
            answer.evidence,
        )
        .join(prediction, prediction.id == answer.prediction_id)
        .join(tables.Question, tables.Question.id == prediction.question_id)
        .where(prediction.question_id.in_(questions))
    )
    conditions = [answer.id.in_(part) for part in chunked(sorted({row.predicted_answer_id for row in on_explore}))]
    conditions += [prediction.public_id.in_(part) for part in chunked(sorted({entry["prediction_id"] for _, entry in sheets}))]
    answers = {row.id: row for condition in conditions for row in session.execute(query.where(condition))}
    answer_ids = {(row.prediction, row.position): row.id for row in answers.values()}
    labels_of: dict[tuple[int, int], list[LabelRecord]] = defaultdict(list)
    times: dict[tuple[int, int], int] = defaultdict(int)
    for row in on_explore:
        key = (row.predicted_answer_id, row.annotator_id)
        times[key] = max(times[key], row.version)
        fields = (row.verdict, row.note, row.state, row.version, row.created, row.updated)
        labels_of[key].append(LabelRecord(answers[row.predicted_answer_id], row.name, row.annotator_id, *fields))
    for row, entry in sheets:
        answer_id = answer_ids.get((entry["prediction_id"], entry["position"]))
        if answer_id is None:  # of a file that was imported without it
            continue
        key = (answer_id, row.annotator_id)
        times[key] += row.version
        fields = (entry["verdict"], entry["note"], "submitted", row.version, row.began, row.created)
        labels_of[key].append(
            LabelRecord(answers[answer_id], row.name, row.annotator_id, *fields, tuple(entry.get("errors", ())))
        )
    latest_labels = []
    for key, labels in labels_of.items():
        latest = max(labels, key=lambda entry: entry.updated)
        if latest.state != "cleared":
            latest_labels.append(latest if latest.version == times[key] else replace(latest, version=times[key]))
    return sorted(latest_labels, key=lambda entry: (entry.answer.number, entry.answer.position, entry.order))


def chunked(values: Sequence[T], size: int = CHUNK_VALUES) -> Iterator[Sequence[T]]:
    """The values in parts, by default small enough for one statement."""
    return (values[start : start + size] for start in range(0, len(values), size))


def _on_explore(session: Session, table: Any, questions: Sequence[int]) -> Sequence[Row[Any]]:
    """Labels, or (of revisions) the times at which they were cleared."""
    answer, prediction, cleared = tables.PredictedAnswer, tables.Prediction, table is tables.JudgmentRevision
    query = (
        select(
            table.predicted_answer_id,
            table.annotator_id,
            tables.Annotator.name,
            table.verdict,
            table.note,
            literal("cleared").label("state") if cleared else table.state,
            table.version,
            (table.saved if cleared else table.created).label("created"),
            (table.replaced if cleared else table.updated).label("updated"),
        )
        .join(answer, answer.id == table.predicted_answer_id)
        .join(prediction, prediction.id == answer.prediction_id)
        .join(tables.Annotator, tables.Annotator.id == table.annotator_id)
        .where(prediction.question_id.in_(questions), table.cleared == True if cleared else true())  # noqa: E712
    )
    return session.execute(query).all()


def generation_rows(session: Session) -> Any:
    """Rows (question_id, annotator_id, type, updated): each person's counted generation of each question, to choose questions by."""
    a, submission = tables.Annotation, workbench.Submission
    is_postgres = session.get_bind().dialect.name == "postgresql"
    body = cast(submission.body, JSON) if is_postgres else type_coerce(submission.body, JSON)
    annotation_type = body["annotation"]["type"].as_string()
    in_files = select(a.question_id, a.annotator_id, a.type, a.updated).where(a.state == "submitted", a.stage == "generation")
    in_projects = counted_submissions(
        workbench.ProjectItem.question_id, submission.annotator_id, annotation_type, submission.created
    )
    generations = union_all(in_files, in_projects.where(submission.stage == "generation")).subquery().c
    newest_first = func.row_number().over(
        partition_by=(generations.question_id, generations.annotator_id), order_by=generations.updated.desc()
    )
    ranked = select(*generations, newest_first.label("place")).subquery()
    return select(ranked).where(ranked.c.place == 1).subquery()


def judged() -> Any:
    """Rows (question_id, updated) of labels, to choose questions by."""
    j, answer, prediction = tables.Judgment, tables.PredictedAnswer, tables.Prediction
    on_explore = select(prediction.question_id, j.updated).join(answer, answer.prediction_id == prediction.id)
    on_explore = on_explore.join(j, j.predicted_answer_id == answer.id)
    sheets = counted_submissions(workbench.ProjectItem.question_id, workbench.Submission.created)
    return union_all(on_explore, sheets.where(workbench.Submission.stage == "judging")).subquery()


def pairs_of(session: Session, ids: Iterable[int]) -> dict[int, tuple[QAPair, ...]]:
    """The pairs of these annotation rows, in order."""
    pairs: dict[int, list[QAPair]] = {}
    query = select(tables.QaPair).where(tables.QaPair.annotation_id.in_(list(ids))).order_by(tables.QaPair.position)
    for row in session.scalars(query):
        pair = QAPair(row.question, tuple(row.answers), tuple(row.passage_ids))
        pairs.setdefault(row.annotation_id, []).append(pair)
    return {key: tuple(value) for key, value in pairs.items()}
