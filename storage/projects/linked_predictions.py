"""Predictions of a system, linked to the items of a project: annotators get them as suggestions, judges judge them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from core.errors import InputError, NotFoundError
from core.types import Prediction
from storage.people.log import note
from storage.people.people import actor
from storage.projects.projects import project_row
from storage.results.predictions import check_key, plain_trace, put_prediction
from storage.schema import tables, workbench
from storage.tasks.batches import BusyError, Pace, Portions, held, linked, there
from storage.tasks.queue_order import bulk, chunks, margins_of, reckon, table_of


def unlinked(session: Session, project: workbench.Project) -> list[tuple[int, int, int]]:
    """(item, side, the newest prediction of that side's system) where the item has none of it yet."""
    item, link, prediction = workbench.ProjectItem, workbench.ItemPrediction, tables.Prediction
    found: list[tuple[int, int, int]] = []
    for side, system in enumerate(project.systems):
        present = select(link.id).where(link.item_id == item.id, link.side == side).exists()
        newest = (
            select(item.id, func.max(prediction.id))
            .join(prediction, prediction.question_id == item.question_id)
            .where(item.project_id == project.id, prediction.system == system, ~present)
            .group_by(item.id)
        )
        found += [(i, side, p) for i, p in session.execute(newest)]
    return found


def item_row(session: Session, item: str) -> workbench.ProjectItem:
    row = session.scalar(select(workbench.ProjectItem).filter_by(public_id=item))
    if row is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    return row


class Links(Portions):
    """The part of the Store about predictions of items."""

    @staticmethod
    def _mine(session: Session, token: str) -> workbench.ProjectJob:
        job = held(session, token)
        if job is None:
            raise BusyError("this took so long that another call took over: nothing was added; do it again")
        return job

    def link_predictions(self, by: str, project: str) -> int:
        """Links the newest stored prediction of each of the project's systems to each item that has none of it yet, and
        returns how many were linked; many of them in portions.  With the order `uncertainty` their margins are read from the traces.

        Raises NotAllowedError unless `by` is a manager, NotFoundError.
        """
        with self.reading() as session:
            actor(session, by, "manager")
            number = project_row(session, project).id
        self._resume_order(number)
        linked = self._link_all(number)
        with self.writing() as session:
            who = actor(session, by, "manager")
            note(session, who.id, "predictions linked", project=number, details={"linked": linked})
        return linked

    def unanswered(self, by: str, project: str, items: Sequence[str] | None = None) -> frozenset[str]:
        """The items (or those of these) that lack a prediction of one of the project's systems, so that nobody can judge them yet.

        Raises NotAllowedError unless `by` is a manager, NotFoundError.
        """
        queue, item = workbench.ItemStage, workbench.ProjectItem
        with self.reading() as session:
            actor(session, by, "manager")
            row = project_row(session, project)
            query = select(item.id, item.public_id).join(queue, queue.item_id == item.id)
            query = query.where(queue.project_id == row.id, queue.stage == "judging", queue.state == "open")
            query = query.where(queue.gold.is_(False), there(session, row.id, queue.item_id))
            if items is not None:
                query = query.where(item.public_id.in_(list(items)))
            names = {int(key): str(name) for key, name in session.execute(query)}
            found: dict[int, list[int]] = {}
            for part in chunks(sorted(names)):
                found |= linked(session, part)
            return frozenset(name for number, name in names.items() if len(found.get(number, ())) < len(row.systems))

    def _link_all(self, project: int, token: str | None = None) -> int:
        """In portions; `token`: of the job that they are a part of."""
        with self.reading() as session:
            wanted = sorted(unlinked(session, session.get_one(workbench.Project, project)))
        done, count, pace = 0, 0, Pace()
        while done < len(wanted):
            part = wanted[done : done + pace.size]
            done += len(part)
            with self.reading() as session:
                margins = None
                if session.get_one(workbench.Project, project).ordering == "uncertainty":
                    known = linked(session, sorted({item for item, _, _ in part}))
                    for item, _, prediction in part:
                        known.setdefault(item, []).append(prediction)
                    margins = margins_of(session, known)
            with self.writing() as session:
                began = time.perf_counter()
                if token is not None:
                    self._mine(session, token)
                count += self._link(session, session.get_one(workbench.Project, project), part, margins)
            pace.rest(time.perf_counter() - began)
        return count

    @staticmethod
    def _link(
        session: Session,
        project: workbench.Project,
        wanted: Sequence[tuple[int, int, int]],
        margins: Mapping[int, float] | None,
    ) -> int:
        """Links these (item, side, prediction) that are not linked yet.  `margins`: of their items, read before; None: they are read
        here where the order needs them."""
        link = workbench.ItemPrediction
        taken: set[tuple[int, int]] = set()
        for part in chunks(sorted({item for item, _, _ in wanted})):
            found = session.execute(select(link.item_id, link.side).where(link.item_id.in_(list(part))))
            taken.update((item, side) for item, side in found)
        rows = [{"item_id": i, "side": s, "prediction_id": p} for i, s, p in wanted if (i, s) not in taken]
        bulk(session, insert(table_of(link)), rows)
        changed = sorted({r["item_id"] for r in rows})
        if margins is None and project.ordering == "uncertainty":
            margins = margins_of(session, linked(session, changed))
        reckon(session, project, changed, margins)
        return len(rows)

    def save_for_item(self, by: str, item: str, prediction: Prediction, key: str | None = None) -> bool:
        """Stores a prediction of an item's question and links it, unless the item has one of its system already; True if it did.

        One transaction that looks at this item alone, so that it costs the same however large the project is.  `key` as in
        `save_prediction`.  Raises NotAllowedError unless `by` is a manager, NotFoundError, InputError for another question, for a system
        that is not the project's, or for what cannot be stored, ConflictError for another run's key.
        """
        trace = plain_trace(prediction)
        check_key(key)
        with self.writing() as session:
            who = actor(session, by, "manager")
            row = item_row(session, item)
            project = session.get_one(workbench.Project, row.project_id)
            system = prediction.system.name
            if system not in project.systems:
                raise InputError(f"{system} is no system of the project: choose it in the project's settings first")
            made = put_prediction(session, prediction, trace, key)
            if made.question_id != row.question_id:
                raise InputError(f"the prediction is of another question than the item: '{prediction.question.text[:80]}'")
            count = self._link(session, project, [(row.id, project.systems.index(system), made.id)], None)
            if count:
                note(session, who.id, "predictions linked", project=project.id, item=row.id, details={"linked": count})
            return bool(count)
