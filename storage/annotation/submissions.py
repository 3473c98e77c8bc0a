"""Submits work and reads submitted work.  Versions are only ever added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from core.errors import InputError
from core.trace import from_json, to_json
from storage.access import blindness
from storage.access.actors import actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import add_version, began_to_count, fill_free_slots, retract_automatic, sources_of
from storage.annotation.drafts import check_body, log_of, put_draft
from storage.annotation.places import Place, find_place, item_row, project_row
from storage.annotation.slots import free_slot
from storage.annotation.tasks import names_of, same_work, side_order, with_names
from storage.records.annotation import (
    Content,
    Interaction,
    InteractionLog,
    Submission,
    SubmissionConflictError,
    Suggestion,
)
from storage.records.checks import check_page
from storage.records.contents import Corrections, content_from_json, gold_from_json, gold_score
from storage.records.enumerations import WorkStage
from storage.records.gate import Circumstances, checked
from storage.records.projects import THRESHOLDS
from storage.records.rows import record_of
from storage.results.predictions import evidence_of
from storage.schema import engine, tables, workbench

MAX_SECONDS = 60 * 60 * 24 * 7.0  # spent on one submission


def _rows_query() -> Any:
    """Rows of submissions with their tasks and the names of `names_of`."""
    submission, task = workbench.Submission, workbench.Task
    return with_names(submission).add_columns(task).join(task, same_work(task, submission))


def _record(
    row: workbench.Submission,
    task: workbench.Task,
    names: Mapping[str, str],
    log: InteractionLog,
    content: Content | None = None,
) -> Submission:
    """The record of a row.  `content`: the body's, if it is already at hand."""
    current = task.state == "submitted" and task.version == row.version
    return record_of(
        Submission,
        row,
        **names,
        content=content if content is not None else content_from_json(row.body, row.stage),
        log=log,
        current=current,
        counted=current and task.slot is not None,
    )


def _work_key(row: workbench.Submission | workbench.Interaction) -> tuple[int, str, int]:
    return row.item_id, row.stage, row.annotator_id


def _records(session: Session, rows: Sequence[Any]) -> list[Submission]:
    """The records of rows of `_rows_query`, each with the person's searches and opened passages."""
    line = workbench.Interaction
    events: dict[tuple[int, str, int], list[Interaction]] = defaultdict(list)
    items = sorted({row.Submission.item_id for row in rows})
    for event in session.scalars(select(line).where(line.item_id.in_(items)).order_by(line.id)):
        events[_work_key(event)].append(record_of(Interaction, event))
    return [
        _record(row.Submission, row.Task, names_of(row), InteractionLog(tuple(events[_work_key(row.Submission)])))
        for row in rows
    ]


def _linked_answers(item: int, *columns: Any) -> Any:
    """(prediction's public id, *columns of the answer) for each answer of the item's linked predictions, by system, then
    position.  A prediction without answers has one row, of None."""
    link, answer = workbench.ItemPrediction, tables.PredictedAnswer
    return (
        select(tables.Prediction.public_id, *columns)
        .select_from(tables.Prediction)
        .join(link, link.prediction_id == tables.Prediction.id)
        .outerjoin(answer, answer.prediction_id == tables.Prediction.id)
        .where(link.item_id == item)
        .order_by(link.side, answer.position)
    )


class Submissions(engine.Part):
    """The part of the Store about submitted work."""

    @allowed_to("annotate")
    def submit(
        self,
        item: str,
        annotator: str,
        stage: WorkStage,
        content: Content,
        *,
        seconds: float,
        draft_body: Mapping[str, Any] | None = None,
        expected_version: int | None = None,
    ) -> Submission:
        """Submits a person's work on an item that they opened, and returns it as stored.

        It counts if the person holds a slot or one is free; otherwise it is kept as surplus (`counted` False).  Content
        equal to the current version changes nothing.  Later submissions are new versions.  `seconds`: spent since the last one.
        `draft_body`: what an undo reopens (default: the last draft).

        Raises InputError for what the gate refuses (storage.records.gate),
        a validated item, or after its author has seen other people's work; SubmissionConflictError when `expected_version` (0: none) is not the
        stored one; SourcesChangedError; NotFoundError, NotAllowedError.
        """
        if not 0 <= seconds <= MAX_SECONDS:
            raise InputError(f"seconds is {seconds}; it must be 0 to {MAX_SECONDS:.0f}")
        body = check_body(draft_body) if draft_body is not None else None
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            task, question = place.need_task(), place.question
            log = log_of(session, place.item.id, stage, place.person.id)
            content = checked(content, stage, _circumstances(session, place, seconds, log))
            plain = to_json(content)
            query = _rows_query().where(workbench.Task.id == task.id, workbench.Submission.version == task.version)
            latest = session.execute(query).first() if task.version else None
            theirs = _record(latest.Submission, task, names_of(latest), log) if latest else None
            if latest and theirs and task.state == "submitted" and latest.Submission.body == plain:
                if place.draft is not None:
                    put_draft(session, task, place.draft, place.draft.body if body is None else body, open=False)
                return theirs
            if task.state not in ("leased", "returned"):
                blindness.refuse_after_asking(session, place.person.id, place.item.id)
            if expected_version is not None and expected_version != task.version:
                raise SubmissionConflictError(content, theirs, expected_version)
            if stage == "generation" and task.slot is not None and "validation" in place.project.stages:
                retract_automatic(session, place.item.id)
            _take_slot(session, place, task)
            score = _gold_score(session, place, content)
            submission = add_version(session, task, plain, seconds=seconds, score=score)
            draft = body if body is not None else place.draft.body if place.draft is not None else {"content": plain}
            put_draft(session, task, place.draft, draft, open=False)
            if task.slot is not None:
                began_to_count(session, place.project, place.queue, task)
            details = {"stage": stage, "version": task.version, "counted": task.slot is not None}
            note(session, place.person.id, "item submitted", project=task.project_id, item=task.item_id, details=details)
            names = {"item": item, "project": place.project.public_id, "annotator": place.person.name}
            names |= {"question_id": question.public_id, "question": question.text}
            return _record(submission, task, names, log, content)

    @allowed_to("annotate")
    def submissions(
        self,
        project: str,
        user: str,
        *,
        stage: WorkStage | None = None,
        annotator: str | None = None,
        item: str | None = None,
        limit: int = 50,
    ) -> list[Submission]:
        """Current submissions (no earlier versions, nor what was returned or reopened), in the order of their submission.  Other people's are
        for validators and managers, but at the items that they have open to write or judge.  Raises NotAllowedError, NotFoundError, InputError for a limit outside 1..500.
        """
        check_page(limit, 0)
        with self.reading() as session:
            person = actor(session, user, "annotator" if annotator == user else "validator")
            submission = workbench.Submission
            task, current_project = workbench.Task, project_row(session, project).id
            query = _rows_query().where(
                submission.project_id == current_project, task.state == "submitted", task.version == submission.version
            )
            if annotator != user:
                hidden = blindness.hidden(person, submission.item_id)
                query = query.where(or_(submission.annotator_id == person.id, ~hidden))
            filters: dict[Any, str | None] = {
                submission.stage: stage,
                tables.Annotator.name: annotator,
                workbench.ProjectItem.public_id: item,
            }
            query = query.where(*(column == value for column, value in filters.items() if value is not None))
            return _records(session, session.execute(query.order_by(submission.id).limit(limit)).all())

    @allowed_to("annotate")
    def submission_history(self, item: str, annotator: str, stage: WorkStage, user: str) -> list[Submission]:
        """All versions of one person's work on an item, the oldest first.  Raises NotFoundError, NotAllowedError."""
        with self.reading() as session:
            person = actor(session, user, "annotator" if annotator == user else "validator")
            if annotator != user and blindness.is_hidden(session, person, item_row(session, item).id):
                raise InputError("you have this item open to write or judge: submit your own work first")
            query = _rows_query().where(
                workbench.ProjectItem.public_id == item, workbench.Submission.stage == stage, tables.Annotator.name == annotator
            )
            return _records(session, session.execute(query.order_by(workbench.Submission.version)).all())

    @allowed_to("annotate")
    def suggestions(self, item: str, user: str) -> tuple[Suggestion, ...]:
        """The answers of the item's linked predictions for the generation stage, by system, then position, without those that
        were struck when the item was added from Explore, and with those that were added.

        Raises NotFoundError, InputError, NotAllowedError.
        """
        with self.reading() as session:
            place = find_place(session, item, user, "generation")
            suggestions = [
                Suggestion(prediction, row.position, row.text, row.clarified or "", row.probability, evidence_of(row))
                for prediction, row in session.execute(_linked_answers(place.item.id, tables.PredictedAnswer))
                if row is not None
            ]
            if place.item.corrections is None:
                return tuple(suggestions)
            c = from_json(Corrections, place.item.corrections)
            added = [Suggestion(c.prediction, c.count + n, text, "", 1.0, ()) for n, text in enumerate(c.added)]
            return (*(s for s in suggestions if s.prediction_id != c.prediction or s.position not in c.struck), *added)


def _circumstances(session: Session, place: Place, seconds: float, log: InteractionLog) -> Circumstances:
    """The facts that the gate needs about an item and a person's work on it.  `seconds`: spent since the last submission."""
    project, stage = place.project, place.queue.stage
    known = Circumstances(
        place.question.text,
        {**THRESHOLDS, **project.thresholds},
        seconds + (place.task.seconds if place.task else 0.0),
        len(log.viewed_passage_ids),
        date.fromisoformat(project.reference_date) if project.reference_date else None,
    )
    if stage == "judging":
        answer = tables.PredictedAnswer
        rows = session.execute(_linked_answers(place.item.id, answer.position, answer.clarified)).all()
        predictions = list(dict.fromkeys(row[0] for row in rows))
        order = side_order(place.task.seed, len(predictions)) if place.task else ()
        return replace(
            known,
            error_labels=frozenset(project.error_labels),
            linked={(name, position): clarified for name, position, clarified in rows if position is not None},
            sides=tuple(predictions[index] for index in order),
        )
    if stage == "validation":
        sources = tuple((name, version) for name, version, _ in sources_of(session, place.item))
        return replace(known, sources=sources, sources_are_complete=place.queue.state != "waiting")
    return known


def _take_slot(session: Session, place: Place, task: workbench.Task) -> None:
    """Gives the person a slot if one is free."""
    if task.slot is None and task.state != "submitted" and place.queue.state == "open":
        fill_free_slots(session, place.project, place.queue)
        task.slot = free_slot(session, place.queue, engine.now(), task.annotator_id)


def _gold_score(session: Session, place: Place, content: Content) -> float | None:
    """The score of work on an item that has a reference."""
    if place.item.gold is None:
        return None
    answer = tables.PredictedAnswer
    rows = session.execute(_linked_answers(place.item.id, answer.position, answer.text))
    texts = {(prediction, position): text for prediction, position, text in rows}
    return gold_score(gold_from_json(place.item.gold), content, texts)
