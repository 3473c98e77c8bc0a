"""The items of a project: questions with their linked predictions, gold references, and the counts of what was done."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from core.errors import AmbiscopeError, InputError
from core.text import question_key
from core.trace import to_json
from core.types import Prediction, ReferenceQuestion
from storage.access.actors import actor
from storage.access.log import note
from storage.annotation.batches import WAIT_SECONDS, resume_order, take_back
from storage.annotation.contents import check_gold, gold_to_json
from storage.annotation.jobs import BusyError, begin, is_stale, job_of, own_job, there
from storage.annotation.linked_predictions import link, link_all, unlinked
from storage.annotation.pace import AT_ONCE, Pace
from storage.annotation.queue_order import bulk, chunks, linked, rank_of, table_of
from storage.annotation.rows import item_row, project_row
from storage.records.annotation import Gold
from storage.records.answer_sets import check_annotation
from storage.records.checks import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_key, check_text, plain_problem
from storage.records.projects import ItemsReport
from storage.results.predictions import plain_trace, put_prediction
from storage.schema import engine, tables, workbench

MAX_ITEMS = 1_000_000  # of one project


def question_ids(session: Session, questions: Sequence[ReferenceQuestion]) -> list[int]:
    """The rows of these questions, made if need be: storage.results.predictions.question_row for many."""
    found: dict[tuple[str, str], int] = {}
    q = tables.Question
    for part in chunks(questions):
        keys = {(question.question, question.id) for question in part}
        for row in session.execute(select(q.id, q.text, q.source_id).where(q.text.in_([text for text, _ in keys]))):
            if (row.text, row.source_id) in keys:
                found[(row.text, row.source_id)] = row.id
        new = [key for key in dict.fromkeys((question.question, question.id) for question in part) if key not in found]
        taken = set(session.scalars(select(q.public_id).where(q.public_id.in_([name for _, name in new]))))
        rows = []
        for text, name in new:
            digest = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()[:32]
            public = digest if not name or name in taken else name
            taken.add(public)
            rows.append(
                {"public_id": public, "source_id": name, "text": text, "folded": text.casefold(), "created": engine.now()}
            )
        if rows:
            bulk(session, insert(table_of(q)), rows)
            for row in session.execute(
                select(q.id, q.text, q.source_id).where(q.public_id.in_([r["public_id"] for r in rows]))
            ):
                found[(row.text, row.source_id)] = row.id
    return [found[(question.question, question.id)] for question in questions]


def _something_to_validate(questions: Sequence[ReferenceQuestion]) -> None:
    for number, question in enumerate(questions, 1):
        if not question.annotations:
            raise InputError(
                f"question {number} has no answers: this project validates the answers of its question file, as nobody writes any; "
                "add questions with answers, or make a project with the stage generation"
            )


def _content(passages: Sequence[dict[str, Any]] | None) -> str:
    """What a question's own passages say, whatever their ids: one question over two texts is two; "" if it has none of its own."""
    return "" if passages is None else json.dumps([[p["title"], p["text"]] for p in passages])


def _named(question: ReferenceQuestion, body: dict[str, Any]) -> ReferenceQuestion:
    """A question without an id is known by its text, and by its own passages where it has some."""
    content = _content(body["passages"])
    return question if question.id or not content else replace(question, id=hashlib.sha256(content.encode()).hexdigest()[:16])


class Intake(engine.Part):
    """The part of the Store about what comes into a project: questions, and the predictions that are linked to them."""

    def add_items(self, by: str, project: str, questions: Sequence[ReferenceQuestion], *, gold: bool = False) -> ItemsReport:
        """Adds questions at the end, all or none, and links stored predictions.  A question that is there already, or comes twice, is left
        alone: the same by `core.text.question_key`, whatever its id, with the same passages of its own.

        Many are stored in portions, so that others can save meanwhile; nobody sees one of them before all are there, and what a killed
        process left of them is removed by the next call.  `gold`: their annotations become the reference of qualification items.
        Raises NotAllowedError unless `by` is a manager, NotFoundError, InputError naming the first wrong question by its number,
        ConflictError while somebody else adds to the same project for longer than `storage.annotation.batches.WAIT_SECONDS`.
        """
        bodies = [self._checked(number, question, gold) for number, question in enumerate(questions, 1)]
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return self._add(by, project, questions, bodies, gold)
            except BusyError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _add(
        self, by: str, project: str, questions: Sequence[ReferenceQuestion], bodies: Sequence[dict[str, Any]], gold: bool
    ) -> ItemsReport:
        fresh = self._fresh(by, project, questions, bodies)
        total, every, every_body = len(questions), questions, bodies
        questions, bodies = [_named(questions[i], bodies[i]) for i in fresh], [bodies[i] for i in fresh]
        at_once = len(questions) <= AT_ONCE
        with self.writing() as session:
            who = actor(session, by, "manager")
            row = project_row(session, project)
            number = row.id
            left = job_of(session, number, "items")
            if left is not None and not is_stale(left):
                raise BusyError("somebody else is adding questions to this project right now: wait a little, then do it again")
            first = left.place if left else (session.scalar(select(func.max(workbench.ProjectItem.id))) or 0) + 1
            job = begin(session, number, "items", first)
            token = job.token
            if left is not None:
                job.created = left.created
            elif at_once:
                added = self._put(session, row, questions, bodies, gold)
                wanted = unlinked(session, row)
                report = ItemsReport(added, total - added, link(session, row, wanted[:AT_ONCE], None))
                self._appear(session, who.id, job, report, gold)
        if left is None and at_once:
            more = link_all(self.database, number) if len(wanted) > AT_ONCE else 0  # items of earlier that predictions came for
            return replace(report, linked=report.linked + more)
        if left is not None:
            take_back(self.database, number, token)
            return self._add(by, project, every, every_body, gold)
        resume_order(self.database, number)
        try:
            added, done, pace = 0, 0, Pace()
            while done < len(questions):
                upto = done + pace.size
                with self.writing() as session:
                    began = time.perf_counter()
                    own_job(session, token)
                    row = session.get_one(workbench.Project, number)  # as it is now
                    added += self._put(session, row, questions[done:upto], bodies[done:upto], gold)
                pace.rest(time.perf_counter() - began)
                done = upto
            report = ItemsReport(added, total - added, link_all(self.database, number, token))
            with self.writing() as session:
                self._appear(session, who.id, own_job(session, token), report, gold)
            return report
        except BaseException:
            with contextlib.suppress(AmbiscopeError):  # else the next call does it
                take_back(self.database, number, token)
            raise

    def _fresh(
        self, by: str, project: str, questions: Sequence[ReferenceQuestion], bodies: Sequence[dict[str, Any]]
    ) -> list[int]:
        """Positions of the questions that the project does not have, each the first of its kind.  Raises as `add_items`."""
        item = workbench.ProjectItem
        wanted = {question_key(question.question) for question in questions}
        known: set[tuple[str, str]] = set()
        with self.reading() as session:
            actor(session, by, "manager")
            row = project_row(session, project)
            if "validation" in row.stages and "generation" not in row.stages:
                _something_to_validate(questions)
            texts = (
                select(item.id, tables.Question.text)
                .join(tables.Question, tables.Question.id == item.question_id)
                .where(item.project_id == row.id, there(session, row.id, item.id))
                .execution_options(yield_per=10_000)
            )
            same = {key: words for key, text in session.execute(texts) if (words := question_key(text)) in wanted}
            for part in chunks(sorted(same)):
                for key, passages in session.execute(select(item.id, item.passages).where(item.id.in_(list(part)))):
                    known.add((same[key], _content(passages)))
        fresh = []
        for position, (question, body) in enumerate(zip(questions, bodies, strict=True)):
            identity = (question_key(question.question), _content(body["passages"]))
            if identity not in known:
                known.add(identity)
                fresh.append(position)
        return fresh

    @staticmethod
    def _appear(session: Session, who: int, job: workbench.ProjectJob, report: ItemsReport, gold: bool) -> None:
        """What makes the items be there."""
        details = {"added": report.added, "gold": gold, "linked": report.linked}
        note(session, who, "items added", project=job.project_id, details=details)
        session.delete(job)

    def _put(
        self,
        session: Session,
        project: workbench.Project,
        questions: Sequence[ReferenceQuestion],
        bodies: Sequence[dict[str, Any]],
        gold: bool,
    ) -> int:
        """Stores those of the questions that the project has not; returns how many."""
        item = workbench.ProjectItem
        ids = question_ids(session, questions)
        known: set[int] = set()
        for part in chunks(ids):
            known.update(
                session.scalars(select(item.question_id).where(item.project_id == project.id, item.question_id.in_(list(part))))
            )
        last = session.scalar(select(func.max(item.position)).where(item.project_id == project.id))
        position, moment = -1 if last is None else last, engine.now()
        rows: list[dict[str, Any]] = []
        for question, body in zip(ids, bodies, strict=True):
            if question in known:
                continue
            known.add(question)
            position += 1
            rows.append(
                {
                    "public_id": uuid.uuid4().hex,
                    "project_id": project.id,
                    "question_id": question,
                    "position": position,
                    "margin": None,
                    "disagreement": None,
                    "created": moment,
                    **body,
                }
            )
        if position >= MAX_ITEMS:
            raise InputError(f"a project holds at most {MAX_ITEMS} items")
        bulk(session, insert(table_of(item)), rows)
        return self._queue(session, project, [r["position"] for r in rows], gold)

    @staticmethod
    def _checked(number: int, question: ReferenceQuestion, gold: bool) -> dict[str, Any]:
        where = f"question {number}"
        check_text(question.question, where, limit=MAX_QUESTION_CHARS, empty=False)
        check_text(question.id, f"the id of {where}", limit=MAX_ID_CHARS)
        for annotation in question.annotations:
            try:
                check_annotation(annotation, complete=False)
            except InputError as e:
                raise InputError(f"{where}: {e}") from None
        passages = None if question.passages is None else to_json(question.passages)
        if problem := plain_problem(passages):
            raise InputError(f"{where}: its passages cannot be stored: {problem}")
        reference = None
        if gold:
            wanted = Gold(question.annotations, {}, str(question.extra.get("hint") or ""))
            try:
                check_gold(wanted)
            except InputError as e:
                raise InputError(f"{where}: {e}") from None
            reference = gold_to_json(wanted)
        return {"gold": reference, "references": to_json(question.annotations), "passages": passages}

    @staticmethod
    def _queue(session: Session, project: workbench.Project, positions: Sequence[int], gold: bool) -> int:
        """Queue entries of the items at these positions, for each stage."""
        if not positions:
            return 0
        item = workbench.ProjectItem
        made = session.execute(
            select(item.id, item.position, tables.Question.public_id)
            .join(tables.Question, tables.Question.id == item.question_id)
            .where(item.project_id == project.id, item.position >= min(positions))
        ).all()
        rows = [
            {
                "project_id": project.id,
                "item_id": m.id,
                "stage": stage,
                "gold": gold,
                "slots": 0 if gold else 1 if stage == "validation" else project.annotators_per_item,
                "state": "waiting" if stage == "validation" and "generation" in project.stages else "open",
                "rank": rank_of(project.ordering, project.seed, m.position, m.public_id, None, None),
            }
            for m in made
            for stage in project.stages
            if not (gold and stage == "validation")
        ]
        bulk(session, insert(table_of(workbench.ItemStage)), rows)
        return len(made)

    def link_predictions(self, by: str, project: str) -> int:
        """Links the newest stored prediction of each of the project's systems to each item that has none of it yet, and
        returns how many were linked; many of them in portions.  With the order `uncertainty` their margins are read from the traces.

        Raises NotAllowedError unless `by` is a manager, NotFoundError.
        """
        with self.reading() as session:
            actor(session, by, "manager")
            number = project_row(session, project).id
        resume_order(self.database, number)
        count = link_all(self.database, number)
        with self.writing() as session:
            who = actor(session, by, "manager")
            note(session, who.id, "predictions linked", project=number, details={"linked": count})
        return count

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
            query = query.where(queue.gold == False, there(session, row.id, queue.item_id))  # noqa: E712
            if items is not None:
                query = query.where(item.public_id.in_(list(items)))
            names = {int(key): str(name) for key, name in session.execute(query)}
            found: dict[int, list[int]] = {}
            for part in chunks(sorted(names)):
                found |= linked(session, part)
            return frozenset(name for number, name in names.items() if len(found.get(number, ())) < len(row.systems))

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
            count = link(session, project, [(row.id, project.systems.index(system), made.id)], None)
            if count:
                note(session, who.id, "predictions linked", project=project.id, item=row.id, details={"linked": count})
            return bool(count)
