"""What people said that counts, wherever they said it: submitted in a project, labelled on Explore, or read from a file.

Work that was submitted stands in `submission` alone.  It counts while its task is submitted and holds a slot: what was returned or
reopened, what is over the number, gold items and automatic validations do not count.  Of what one person said of the same question and
stage, or of the same answer, the latest counts, be it in two projects or in a project and elsewhere.  A label that was cleared on
Explore, or turned into a draft there, is a later label like another: the project's label does not count then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import JSON, ColumnElement, Row, Select, and_, cast, func, literal, select, true, type_coerce, union_all
from sqlalchemy.orm import Session, aliased

from core.trace import from_json
from core.types import Annotation, QAPair
from storage.records.enumerations import Stage
from storage.schema import tables, workbench

CHUNK = 500  # values of one statement
_Work = Row[Any]


@dataclass(frozen=True, slots=True)
class Annotated:
    """The answer set of one person for one question at one stage.  `version` counts where it was said; `created`: its first version."""

    question: int  # its row
    annotator: str
    order: int  # of the person, among all
    stage: str
    annotation: Annotation
    version: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class Labelled:
    """What one person says of one predicted answer.  `answer`: question_id, question (its text), prediction, system, corpus, corpus_digest, position, text,
    clarified, probability, passed, evidence."""

    answer: Any
    annotator: str
    order: int
    label: str | None
    note: str
    state: str  # submitted; draft or skipped: only on Explore
    version: int  # how often it was said, here and there
    created: datetime
    updated: datetime
    errors: tuple[str, ...] = ()  # error labels of the project where it was said

    @property
    def counts(self) -> bool:
        return self.state == "submitted"


def stands() -> ColumnElement[bool]:
    """Joins tasks with submissions: the one that the task stands at."""
    task, sent = workbench.Task, workbench.Submission
    return and_(
        sent.item_id == task.item_id,
        sent.stage == task.stage,
        sent.annotator_id == task.annotator_id,
        sent.version == task.version,
    )


def counted(*columns: Any) -> Select[Any]:
    """The one query of submissions that count."""
    sent, task, item = workbench.Submission, workbench.Task, workbench.ProjectItem
    query = (
        select(*columns).select_from(sent).join(task, stands()).join(item, item.id == sent.item_id).where(item.gold.is_(None))
    )
    return query.where(task.state == "submitted", task.slot.is_not(None), sent.automatic == False)  # noqa: E712  (bound as 0: PostgreSQL's column is a number)


def submitted(session: Session, questions: Sequence[int]) -> Sequence[_Work]:
    """Rows (question_id, project, item, stage, name, annotator_id, body, version, created, began) of submissions that count, by id."""
    sent, item, first = workbench.Submission, workbench.ProjectItem, aliased(workbench.Submission)
    same = (first.item_id == sent.item_id, first.stage == sent.stage, first.annotator_id == sent.annotator_id)
    query = (
        counted(
            item.question_id,
            workbench.Project.public_id.label("project"),
            item.public_id.label("item"),
            sent.stage,
            tables.Annotator.name,
            sent.annotator_id,
            sent.body,
            sent.version,
            sent.created,
            first.created.label("began"),
        )
        .join(workbench.Project, workbench.Project.id == sent.project_id)
        .join(tables.Annotator, tables.Annotator.id == sent.annotator_id)
        .join(first, and_(*same, first.version == 1))
        .where(item.question_id.in_(questions))
        .order_by(sent.id)
    )
    return session.execute(query).all()


def annotated(session: Session, questions: Sequence[int], work: Iterable[_Work]) -> list[Annotated]:
    """The answer sets that count, by person, then stage.  `work`: what `submitted` found of these questions."""
    a = tables.Annotation
    query = (
        select(a, tables.Annotator.name)
        .join(tables.Annotator, tables.Annotator.id == a.annotator_id)
        .where(a.state == "submitted", a.question_id.in_(questions))
    )
    rows = session.execute(query).all()
    pairs = pairs_of(session, [row.id for row, _ in rows])
    said = [
        Annotated(
            row.question_id,
            name,
            row.annotator_id,
            row.stage,
            Annotation(row.type, pairs.get(row.id, ())),  # type: ignore[arg-type]
            row.version,
            row.created,
            row.updated,
        )
        for row, name in rows
    ]
    for row in work:
        if row.stage in get_args(Stage):
            annotation = from_json(Annotation, row.body["annotation"])
            told = (row.question_id, row.name, row.annotator_id, row.stage)
            said.append(Annotated(*told, annotation, row.version, row.began, row.created))
    latest = {(one.question, one.order, one.stage): one for one in sorted(said, key=lambda one: one.updated)}
    return [latest[key] for key in sorted(latest)]


def labelled(session: Session, questions: Sequence[int], work: Iterable[_Work]) -> list[Labelled]:
    """The labels that stand, by prediction, position and person; drafts of Explore too.  `work` as in `annotated`."""
    answer, prediction = tables.PredictedAnswer, tables.Prediction
    elsewhere = [row for table in (tables.Judgment, tables.JudgmentRevision) for row in _on_explore(session, table, questions)]
    sheets = [(row, one) for row in work if row.stage == "judging" for one in row.body["answers"]]
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
    named = [answer.id.in_(part) for part in _parts({row.predicted_answer_id for row in elsewhere})]
    named += [prediction.public_id.in_(part) for part in _parts({one["prediction_id"] for _, one in sheets})]
    answers = {row.id: row for which in named for row in session.execute(query.where(which))}
    places = {(row.prediction, row.position): row.id for row in answers.values()}
    said: dict[tuple[int, int], list[Labelled]] = defaultdict(list)
    times: dict[tuple[int, int], int] = defaultdict(int)
    for row in elsewhere:
        key = (row.predicted_answer_id, row.annotator_id)
        times[key] = max(times[key], row.version)
        told = (row.verdict, row.note, row.state, row.version, row.created, row.updated)
        said[key].append(Labelled(answers[row.predicted_answer_id], row.name, row.annotator_id, *told))
    for row, one in sheets:
        place = places.get((one["prediction_id"], one["position"]))
        if place is None:  # of a file that was imported without it
            continue
        key = (place, row.annotator_id)
        times[key] += row.version
        told = (one["verdict"], one["note"], "submitted", row.version, row.began, row.created)
        said[key].append(Labelled(answers[place], row.name, row.annotator_id, *told, tuple(one.get("errors", ()))))
    found = []
    for key, labels in said.items():
        latest = max(labels, key=lambda one: one.updated)
        if latest.state != "cleared":
            found.append(latest if latest.version == times[key] else replace(latest, version=times[key]))
    return sorted(found, key=lambda one: (one.answer.number, one.answer.position, one.order))


def _parts(values: set[Any]) -> Iterator[list[Any]]:
    """Few enough for one statement."""
    listed = sorted(values)
    return (listed[start : start + CHUNK] for start in range(0, len(listed), CHUNK))


def _on_explore(session: Session, table: Any, questions: Sequence[int]) -> Sequence[Row[Any]]:
    """Labels, or (of revisions) when they were cleared."""
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


def annotators(session: Session) -> Any:
    """Rows (question_id, annotator_id, type, updated): each person's generation that counts of each question, to choose questions by."""
    a, sent = tables.Annotation, workbench.Submission
    document = cast(sent.body, JSON) if session.get_bind().dialect.name == "postgresql" else type_coerce(sent.body, JSON)
    said = union_all(
        select(a.question_id, a.annotator_id, a.type, a.updated).where(a.state == "submitted", a.stage == "generation"),
        counted(
            workbench.ProjectItem.question_id, sent.annotator_id, document["annotation"]["type"].as_string(), sent.created
        ).where(sent.stage == "generation"),
    ).subquery()
    place = func.row_number().over(partition_by=(said.c.question_id, said.c.annotator_id), order_by=said.c.updated.desc())
    ranked = select(said, place.label("place")).subquery()
    return select(ranked).where(ranked.c.place == 1).subquery()


def judged() -> Any:
    """Rows (question_id, updated) of labels, to choose questions by."""
    j, answer, prediction = tables.Judgment, tables.PredictedAnswer, tables.Prediction
    on_explore = select(prediction.question_id, j.updated).join(answer, answer.prediction_id == prediction.id)
    on_explore = on_explore.join(j, j.predicted_answer_id == answer.id)
    sheets = counted(workbench.ProjectItem.question_id, workbench.Submission.created)
    return union_all(on_explore, sheets.where(workbench.Submission.stage == "judging")).subquery()


def pairs_of(session: Session, ids: Iterable[int]) -> dict[int, tuple[QAPair, ...]]:
    """The pairs of these annotation rows, in order."""
    found: dict[int, list[QAPair]] = {}
    query = select(tables.QaPair).where(tables.QaPair.annotation_id.in_(list(ids))).order_by(tables.QaPair.position)
    for row in session.scalars(query):
        pair = QAPair(row.question, tuple(row.answers), tuple(row.passage_ids))
        found.setdefault(row.annotation_id, []).append(pair)
    return {key: tuple(value) for key, value in found.items()}
