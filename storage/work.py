"""Assignments: who works on what, for how long."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from sqlalchemy import delete, select

from core.errors import InputError, NotFoundError
from storage import models
from storage.db import Database, now
from storage.judgments import annotator_row, check_choice
from storage.predictions import require_question
from storage.records import Assignment, Item


class Work(Database):
    """The part of the Store about leases."""

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
