"""Submitting work, and reading what was submitted.  Versions are only ever added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from core.annotating import checks
from core.errors import InputError
from core.trace import to_json
from storage.access.actors import actor
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import add_version, began_to_count, fill_free_slots, retract_automatic, sources_of
from storage.annotation.contents import check_content, content_from_json, corrections_of, gold_from_json, gold_score
from storage.annotation.drafts import check_body, log_of, put_draft
from storage.annotation.places import Place, find_place, project_row
from storage.annotation.slots import free_slot
from storage.annotation.tasks import side_order
from storage.records.annotation import (
    Content,
    GenerationWork,
    Interaction,
    InteractionLog,
    JudgingWork,
    SourcesChangedError,
    Submission,
    SubmissionConflictError,
    Suggestion,
    ValidationWork,
)
from storage.records.checks import check_choice, check_page
from storage.records.enumerations import WorkStage
from storage.records.projects import THRESHOLDS
from storage.records.rows import record_of
from storage.results.predictions import evidence_of
from storage.schema import engine, tables, workbench

MAX_SECONDS = 60 * 60 * 24 * 7.0  # spent on one submission
_NO_LOG = InteractionLog((), (), (), ())


def _rows_query() -> Any:
    """(submission, task, item, project, question id, question, annotator) rows."""
    sent, task, item = workbench.Submission, workbench.Task, workbench.ProjectItem
    return (
        select(
            sent,
            task,
            item.public_id,
            workbench.Project.public_id,
            tables.Question.public_id,
            tables.Question.text,
            tables.Annotator.name,
        )
        .join(task, and_(task.item_id == sent.item_id, task.stage == sent.stage, task.annotator_id == sent.annotator_id))
        .join(item, item.id == sent.item_id)
        .join(workbench.Project, workbench.Project.id == sent.project_id)
        .join(tables.Question, tables.Question.id == item.question_id)
        .join(tables.Annotator, tables.Annotator.id == sent.annotator_id)
    )


def _current() -> Any:
    return and_(workbench.Task.state == "submitted", workbench.Task.version == workbench.Submission.version)


def _record(row: Sequence[Any], log: InteractionLog, content: Content | None = None) -> Submission:
    """`row`: of `_rows_query`; `content`: the body's, where it is at hand."""
    sent, task, item, project, question_id, question, annotator = row
    current = task.state == "submitted" and task.version == sent.version
    names = {"item": item, "project": project, "question_id": question_id, "question": question, "annotator": annotator}
    return record_of(
        Submission,
        sent,
        **names,
        content=content if content is not None else content_from_json(sent.body, sent.stage),
        log=log,
        current=current,
        counted=current and task.slot is not None,
    )


def _logs(session: Session, rows: Sequence[Sequence[Any]]) -> dict[tuple[int, str, int], InteractionLog]:
    """The interactions of these submissions, by (item, stage, annotator)."""
    line = workbench.Interaction
    events: dict[tuple[int, str, int], list[Interaction]] = {}
    items = sorted({row[0].item_id for row in rows})
    for found in session.scalars(select(line).where(line.item_id.in_(items)).order_by(line.id)):
        events.setdefault((found.item_id, found.stage, found.annotator_id), []).append(record_of(Interaction, found))
    return {key: InteractionLog.from_events(value) for key, value in events.items()}


def _records(session: Session, rows: Sequence[Sequence[Any]]) -> list[Submission]:
    logs = _logs(session, rows) if rows else {}
    return [_record(row, logs.get((row[0].item_id, row[0].stage, row[0].annotator_id), _NO_LOG)) for row in rows]


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

        It counts if the person holds a slot or one is free; otherwise it is kept over the number (`counted` False).  Content
        equal to the current version changes nothing.  Later submissions are new versions.  `seconds`: spent since the last one.
        `draft_body`: what an undo reopens (default: the last draft).

        Raises InputError for what the rules of the stage refuse (core.annotating.checks.errors; an answer without a label),
        a validated item; SubmissionConflictError when `expected_version` (0: none) is not the
        stored one; SourcesChangedError; NotFoundError, NotAllowedError.
        """
        check_choice(stage, WorkStage, "the stage")
        check_content(content, stage)
        if not 0 <= seconds <= MAX_SECONDS:
            raise InputError(f"seconds is {seconds}; it must be 0 to {MAX_SECONDS:.0f}")
        body = check_body(draft_body) if draft_body is not None else None
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            task, question = place.need_task(), session.get_one(tables.Question, place.item.question_id)
            log = log_of(session, place.item.id, stage, place.who.id)
            content = _completed(session, place, question.text, content, seconds, log)
            plain = to_json(content)
            theirs = _version(session, task) if task.version else None
            if theirs is not None and task.state == "submitted" and theirs[0].body == plain:
                return _record(theirs, log)
            if expected_version is not None and expected_version != task.version:
                raise SubmissionConflictError(content, _record(theirs, log) if theirs else None, expected_version)
            if stage == "generation" and task.slot is not None and "validation" in place.project.stages:
                retract_automatic(session, place.item.id)
            if task.state not in ("leased", "submitted", "returned"):  # a slot that is free, or none
                fill_free_slots(session, place.project, place.queue)
                task.slot = free_slot(session, place.queue, engine.now(), task.annotator_id)
            score = _score(session, place, content) if place.item.gold is not None else None
            sent = add_version(session, task, plain, seconds=seconds, score=score)
            kept = body if body is not None else place.draft.body if place.draft is not None else {"content": plain}
            put_draft(session, task, place.draft, kept, open=False)
            if task.slot is not None:
                began_to_count(session, place.project, place.queue, task)
            details = {"stage": stage, "version": task.version, "counted": task.slot is not None}
            note(session, place.who.id, "item submitted", project=task.project_id, item=task.item_id, details=details)
            row = (sent, task, item, place.project.public_id, question.public_id, question.text, place.who.name)
            return _record(row, log, content)

    @allowed_to("annotate")
    def submissions(
        self,
        project: str,
        by: str,
        *,
        stage: WorkStage | None = None,
        annotator: str | None = None,
        item: str | None = None,
        limit: int = 50,
    ) -> list[Submission]:
        """What stands (no earlier versions, nor what was returned or reopened), in the order in which it was submitted.  Other people's is for
        validators and managers.  Raises NotAllowedError, NotFoundError, InputError for a limit outside 1..500.
        """
        check_page(limit, 0)
        with self.reading() as session:
            actor(session, by, "annotator" if annotator == by else "validator")
            sent = workbench.Submission
            query = _rows_query().where(sent.project_id == project_row(session, project).id, _current())
            if stage is not None:
                query = query.where(sent.stage == stage)
            if annotator is not None:
                query = query.where(tables.Annotator.name == annotator)
            if item is not None:
                query = query.where(workbench.ProjectItem.public_id == item)
            return _records(session, session.execute(query.order_by(sent.id).limit(limit)).all())

    @allowed_to("annotate")
    def submission_history(self, item: str, annotator: str, stage: WorkStage, by: str) -> list[Submission]:
        """All versions of one person's work on an item, the oldest first.  Raises NotFoundError, NotAllowedError."""
        with self.reading() as session:
            actor(session, by, "annotator" if annotator == by else "validator")
            query = _rows_query().where(
                workbench.ProjectItem.public_id == item, workbench.Submission.stage == stage, tables.Annotator.name == annotator
            )
            return _records(session, session.execute(query.order_by(workbench.Submission.version)).all())

    @allowed_to("annotate")
    def suggestions(self, item: str, by: str) -> tuple[Suggestion, ...]:
        """The answers of the item's linked predictions, for the generation stage: by system, then position.  Without those that were struck
        when the item was added from Explore, and with those that were added.

        Raises NotFoundError, InputError, NotAllowedError.
        """
        with self.reading() as session:
            place = find_place(session, item, by, "generation")
            answer, link = tables.PredictedAnswer, workbench.ItemPrediction
            rows = session.execute(
                select(answer, tables.Prediction.public_id)
                .join(tables.Prediction, tables.Prediction.id == answer.prediction_id)
                .join(link, link.prediction_id == tables.Prediction.id)
                .where(link.item_id == place.item.id)
                .order_by(link.side, answer.position)
            )
            found = [
                Suggestion(prediction, row.position, row.text, row.clarified or "", row.probability, evidence_of(row))
                for row, prediction in rows
            ]
            if place.item.corrections is None:
                return tuple(found)
            made = corrections_of(place.item.corrections)
            added = [Suggestion(made.prediction, made.count + n, text, "", 1.0, ()) for n, text in enumerate(made.added)]
            struck = {(made.prediction, position) for position in made.struck}
            return (*(one for one in found if (one.prediction_id, one.position) not in struck), *added)


def _complete_judging(session: Session, place: Place, content: JudgingWork) -> JudgingWork:
    """Each answer of each linked prediction has a label, each disambiguated question too; the preference gets its prediction."""
    link, answer = workbench.ItemPrediction, tables.PredictedAnswer
    rows = session.execute(
        select(tables.Prediction.public_id, answer.position, answer.clarified)
        .join(link, link.prediction_id == tables.Prediction.id)
        .outerjoin(answer, answer.prediction_id == tables.Prediction.id)
        .where(link.item_id == place.item.id)
        .order_by(link.side, answer.position)
    ).all()
    predictions = list(dict.fromkeys(row[0] for row in rows))
    wanted = {(name, position): clarified for name, position, clarified in rows if position is not None}
    given = {(a.prediction_id, a.position): a for a in content.answers}
    known = set(place.project.error_labels)
    if foreign := sorted({label for a in content.answers for label in a.errors} - known):
        raise InputError(f"'{foreign[0][:80]}' is no error label of the project; it has {', '.join(sorted(known)) or 'none'}")
    if strange := sorted(set(given) - set(wanted)):
        raise InputError(f"answer {strange[0][1] + 1} of prediction {strange[0][0][:40]} is none of this item")
    if missing := sorted(set(wanted) - set(given)):
        raise InputError(f"{len(missing)} of {len(wanted)} answers have no label yet")
    for key, clarified in wanted.items():
        if (given[key].question is None) != (clarified is None):
            what = (
                "has no disambiguated question to judge" if clarified is None else "has a disambiguated question: judge it too"
            )
            raise InputError(f"answer {key[1] + 1} {what}")
    if content.preference is not None and len(predictions) < 2:
        raise InputError("there is one answer set only: no preference between two")
    preferred = ""
    if content.preference in ("a", "b") and place.task is not None:
        order = side_order(place.task.seed, len(predictions))
        preferred = predictions[order["ab".index(content.preference)]]
    return replace(content, preferred=preferred)


def _version(session: Session, task: workbench.Task) -> Sequence[Any] | None:
    return session.execute(
        _rows_query().where(workbench.Task.id == task.id, workbench.Submission.version == task.version)
    ).first()


def _completed(session: Session, place: Place, prompt: str, content: Content, seconds: float, log: InteractionLog) -> Content:
    """The content with what the store adds, found complete."""
    if isinstance(content, JudgingWork):
        return _complete_judging(session, place, content)
    limits = {**THRESHOLDS, **place.project.thresholds}
    opened = len(log.viewed_passage_ids) if isinstance(content, GenerationWork) else None
    wrong = tuple(map(str, checks.errors(content.annotation, prompt, opened=opened, must_read=int(limits["must_read"]))))
    spent = seconds + (place.task.seconds if place.task else 0.0)
    if content.annotation.type != "multiple" and opened is not None and spent < limits["min_seconds_no_pairs"]:
        wrong += (f"look for other answers a little longer: {limits['min_seconds_no_pairs']:.0f} s at least",)
    if wrong:
        raise InputError("; ".join(wrong))
    asked = date.fromisoformat(place.project.reference_date) if place.project.reference_date else None
    doubts = checks.doubts(content.annotation, prompt, reference_date=asked, alias_words=int(limits["alias_words"]))
    said = tuple(map(str, doubts))
    if isinstance(content, ValidationWork):
        present = tuple((name, version) for name, version, _ in sources_of(session, place.item))
        if place.queue.state == "waiting" or (content.sources and content.sources != present):
            raise SourcesChangedError("an annotation was changed or sent back meanwhile: load them again")
        return replace(content, warnings=said, sources=present)
    return replace(content, warnings=said)


def _score(session: Session, place: Place, content: Content) -> float:
    answer, link = tables.PredictedAnswer, workbench.ItemPrediction
    rows = session.execute(
        select(tables.Prediction.public_id, answer.position, answer.text)
        .join(answer, answer.prediction_id == tables.Prediction.id)
        .join(link, link.prediction_id == tables.Prediction.id)
        .where(link.item_id == place.item.id)
    )
    return gold_score(gold_from_json(place.item.gold or {}), content, {(row[0], row[1]): row[2] for row in rows})
