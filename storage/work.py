"""Assignments (who works on what, for how long) and evaluations."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from sqlalchemy import delete, select
from sqlalchemy.orm import undefer

from core.errors import InputError, NotFoundError
from storage import models
from storage.db import Database, now
from storage.judgments import annotator_row, check_choice
from storage.plain import check_text, plain_problem
from storage.predictions import MAX_ID_CHARS, check_page, require_question
from storage.records import Assignment, Item, StoredEvaluation


class Work(Database):
    """The part of the Store about leases and evaluations."""

    def claim(self, kind: Item, item: str, annotator: str, *, slots: int = 1, minutes: float = 30.0) -> Assignment | None:
        """Leases one of an item's `slots`, or renews this annotator's lease; None when all are taken by others.

        An expired lease is free.  Never more than `slots` annotators hold one item: the claim is one write transaction,
        and a unique constraint stands behind it.  Raises NotFoundError for an unknown item, InputError for a wrong
        kind, name, slots or minutes.
        """
        check_choice(kind, Item, "the kind")
        if slots < 1 or not 0 < minutes <= 60 * 24 * 30:
            raise InputError(f"slots is {slots} and minutes {minutes}; slots must be 1 or more, minutes between 0 and a month")
        with self.writing() as session:
            if kind == "question":
                require_question(session, item)
            elif session.scalar(select(models.Prediction.id).filter_by(public_id=item)) is None:
                raise NotFoundError(f"there is no prediction '{item[:80]}'")
            moment = now()
            lease = models.Assignment
            session.execute(delete(lease).where(lease.kind == kind, lease.item == item, lease.expires <= moment))
            who = annotator_row(session, annotator).id
            held = {row.slot: row for row in session.scalars(select(lease).filter_by(kind=kind, item=item))}
            row = next((r for r in held.values() if r.annotator_id == who), None)
            expires = moment + timedelta(minutes=minutes)
            if row is not None:
                row.expires = expires
            else:
                free = next((slot for slot in range(slots) if slot not in held), None)
                if free is None or len(held) >= slots:
                    return None
                row = lease(kind=kind, item=item, annotator_id=who, slot=free, created=moment, expires=expires)
                session.add(row)
            return Assignment(kind, item, annotator, row.slot, expires)

    def release(self, kind: Item, item: str, annotator: str) -> bool:
        """Gives a lease back; False if there was none."""
        with self.writing() as session:
            row = session.scalar(
                select(models.Assignment)
                .join(models.Annotator, models.Annotator.id == models.Assignment.annotator_id)
                .where(models.Assignment.kind == kind, models.Assignment.item == item, models.Annotator.name == annotator)
            )
            if row is None:
                return False
            session.delete(row)
            return True

    def assignments(self, kind: Item, item: str) -> list[Assignment]:
        """The leases that have not expired, by slot."""
        with self.reading() as session:
            query = (
                select(models.Assignment, models.Annotator.name)
                .join(models.Annotator, models.Annotator.id == models.Assignment.annotator_id)
                .where(models.Assignment.kind == kind, models.Assignment.item == item, models.Assignment.expires > now())
                .order_by(models.Assignment.slot)
            )
            return [
                Assignment(cast(Item, row.kind), row.item, name, row.slot, row.expires) for row, name in session.execute(query)
            ]

    def save_evaluation(
        self, *, system: str, corpus: str, questions: str, metrics: Mapping[str, Any], report: Mapping[str, Any]
    ) -> str:
        """Stores a run's report (plain JSON: rows, intervals, failures, provenance) and returns its id.  Raises InputError."""
        for what, value in (("system", system), ("corpus", corpus), ("questions", questions)):
            check_text(value, what, limit=4 * MAX_ID_CHARS)
        for what, body in (("metrics", dict(metrics)), ("report", dict(report))):
            if problem := plain_problem(body):
                raise InputError(f"the evaluation's {what} cannot be stored: {problem}")
        with self.writing() as session:
            public_id = uuid.uuid4().hex
            session.add(
                models.Evaluation(
                    public_id=public_id,
                    system=system,
                    corpus=corpus,
                    questions=questions,
                    metrics=dict(metrics),
                    report=dict(report),
                    created=now(),
                )
            )
            return public_id

    def get_evaluation(self, evaluation_id: str) -> StoredEvaluation:
        """With its report.  Raises NotFoundError for an unknown id."""
        with self.reading() as session:
            row = session.scalar(
                select(models.Evaluation).filter_by(public_id=evaluation_id).options(undefer(models.Evaluation.report))
            )
            if row is None:
                raise NotFoundError(f"there is no evaluation '{evaluation_id[:80]}'")
            return _record(row, row.report)

    def evaluations(self, limit: int = 50, offset: int = 0) -> list[StoredEvaluation]:
        """The newest first, without their reports.  Raises InputError for a limit outside 1..500."""
        check_page(limit, offset)
        with self.reading() as session:
            query = select(models.Evaluation).order_by(models.Evaluation.created.desc(), models.Evaluation.id.desc())
            return [_record(row, {}) for row in session.scalars(query.limit(limit).offset(offset))]


def _record(row: models.Evaluation, report: Mapping[str, Any]) -> StoredEvaluation:
    return StoredEvaluation(row.public_id, row.system, row.corpus, row.questions, row.metrics, row.created, report)
