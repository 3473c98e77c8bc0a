"""The items of a project: questions with their linked predictions, gold references, and the counts of what was done."""

from __future__ import annotations

import contextlib
import hashlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from sqlalchemy import and_, case, func, insert, or_, select
from sqlalchemy.orm import Session, undefer

from core import datasets
from core.errors import AmbiscopeError, InputError, NotFoundError
from core.trace import to_json
from core.types import ReferenceQuestion
from storage import db, models
from storage import models_annotation as tables
from storage.activity import note
from storage.annotations import check_annotation
from storage.contents import annotations_from_json, check_gold, gold_to_json, passages_from_json
from storage.judgments import check_choice
from storage.people import actor, can
from storage.plain import check_text, plain_problem
from storage.portions import (
    AT_ONCE,
    WAIT_SECONDS,
    BusyError,
    Pace,
    Portions,
    begin,
    held,
    is_stale,
    job_of,
    linked,
    there,
)
from storage.predictions import MAX_ID_CHARS, MAX_QUESTION_CHARS, check_page
from storage.projects import project_row
from storage.ranking import bulk, chunks, margins_of, rank_of, reckon, table_of
from storage.records_annotation import (
    Gold,
    Item,
    ItemsReport,
    ItemState,
    ItemSummary,
    LinkedPrediction,
    StageProgress,
    WorkStage,
)

MAX_ITEMS = 1_000_000  # of one project


def _unlinked(session: Session, project: tables.Project) -> list[tuple[int, int, int]]:
    """(item, side, the newest prediction of that side's system) where the item has none of it yet."""
    item, link, prediction = tables.ProjectItem, tables.ItemPrediction, models.Prediction
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


def item_row(session: Session, item: str) -> tables.ProjectItem:
    row = session.scalar(select(tables.ProjectItem).filter_by(public_id=item))
    if row is None:
        raise NotFoundError(f"there is no item '{item[:80]}'")
    return row


def question_ids(session: Session, questions: Sequence[ReferenceQuestion]) -> list[int]:
    """The rows of these questions, made if need be: storage.predictions.question_row for many."""
    found: dict[tuple[str, str], int] = {}
    q = models.Question
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
            rows.append({"public_id": public, "source_id": name, "text": text, "folded": text.casefold(), "created": db.now()})
        if rows:
            bulk(session, insert(table_of(q)), rows)
            for row in session.execute(
                select(q.id, q.text, q.source_id).where(q.public_id.in_([r["public_id"] for r in rows]))
            ):
                found[(row.text, row.source_id)] = row.id
    return [found[(question.question, question.id)] for question in questions]


class Items(Portions):
    """The part of the Store about a project's items."""

    def add_items(self, by: str, project: str, questions: Sequence[ReferenceQuestion], *, gold: bool = False) -> ItemsReport:
        """Adds questions at the end, all or none, and links stored predictions.  A question that is there already is left alone.

        Many are stored in portions, so that others can save meanwhile; nobody sees one of them before all are there, and what a killed
        process left of them is removed by the next call.  `gold`: their annotations become the reference of qualification items.
        Raises NotAllowedError unless `by` is a manager, NotFoundError, InputError naming the first wrong question by its number,
        ConflictError while somebody else adds to the same project for longer than `storage.portions.WAIT_SECONDS`.
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
        at_once = len(questions) <= AT_ONCE
        with self.writing() as session:
            who = actor(session, by, "manager")
            row = project_row(session, project)
            number = row.id
            left = job_of(session, number, "items")
            if left is not None and not is_stale(left):
                raise BusyError("somebody else is adding questions to this project right now: wait a little, then do it again")
            first = left.place if left else (session.scalar(select(func.max(tables.ProjectItem.id))) or 0) + 1
            job = begin(session, number, "items", first)
            token = job.token
            if left is not None:
                job.created = left.created
            elif at_once:
                added = self._put(session, row, questions, bodies, gold)
                wanted = _unlinked(session, row)
                report = ItemsReport(added, len(questions) - added, self._link(session, row, wanted[:AT_ONCE], None))
                self._appear(session, who.id, job, report, gold)
        if left is None and at_once:
            more = self._link_all(number) if len(wanted) > AT_ONCE else 0  # items of earlier that predictions came for
            return replace(report, linked=report.linked + more)
        if left is not None:
            self._take_back(number, token)
            return self._add(by, project, questions, bodies, gold)
        self._resume_order(number)
        try:
            added, done, pace = 0, 0, Pace()
            while done < len(questions):
                upto = done + pace.size
                with self.writing() as session:
                    began = time.perf_counter()
                    self._mine(session, token)
                    row = session.get_one(tables.Project, number)  # as it is now
                    added += self._put(session, row, questions[done:upto], bodies[done:upto], gold)
                pace.rest(time.perf_counter() - began)
                done = upto
            report = ItemsReport(added, len(questions) - added, self._link_all(number, token))
            with self.writing() as session:
                self._appear(session, who.id, self._mine(session, token), report, gold)
            return report
        except BaseException:
            with contextlib.suppress(AmbiscopeError):  # else the next call does it
                self._take_back(number, token)
            raise

    @staticmethod
    def _mine(session: Session, token: str) -> tables.ProjectJob:
        job = held(session, token)
        if job is None:
            raise BusyError("this took so long that another call took over: nothing was added; do it again")
        return job

    @staticmethod
    def _appear(session: Session, who: int, job: tables.ProjectJob, report: ItemsReport, gold: bool) -> None:
        """What makes the items be there."""
        details = {"added": report.added, "gold": gold, "linked": report.linked}
        note(session, who, "items added", project=job.project_id, details=details)
        session.delete(job)

    def _put(
        self,
        session: Session,
        project: tables.Project,
        questions: Sequence[ReferenceQuestion],
        bodies: Sequence[dict[str, Any]],
        gold: bool,
    ) -> int:
        """Stores those of the questions that the project has not; returns how many."""
        item = tables.ProjectItem
        ids = question_ids(session, questions)
        known: set[int] = set()
        for part in chunks(ids):
            known.update(
                session.scalars(select(item.question_id).where(item.project_id == project.id, item.question_id.in_(list(part))))
            )
        last = session.scalar(select(func.max(item.position)).where(item.project_id == project.id))
        position, moment = -1 if last is None else last, db.now()
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
    def _queue(session: Session, project: tables.Project, positions: Sequence[int], gold: bool) -> int:
        """Queue entries of the items at these positions, for each stage."""
        if not positions:
            return 0
        item = tables.ProjectItem
        made = session.execute(
            select(item.id, item.position, models.Question.public_id)
            .join(models.Question, models.Question.id == item.question_id)
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
        bulk(session, insert(table_of(tables.ItemStage)), rows)
        return len(made)

    def add_question_file(
        self, by: str, project: str, path: Path, layout: str | None = None, *, gold: bool = False
    ) -> ItemsReport:
        """`add_items` of a question file (core.datasets).  Raises as `add_items`, and FormatError with file, line and field."""
        with self.reading() as session:
            actor(session, by, "manager")
            project_row(session, project)
        return self.add_items(by, project, datasets.load(path, layout), gold=gold)

    def set_gold(self, by: str, item: str, gold: Gold | None) -> None:
        """Makes an item a qualification item, or (None) an ordinary one.  Raises InputError once somebody worked on it."""
        if gold is not None:
            check_gold(gold)
        with self.writing() as session:
            who = actor(session, by, "manager")
            row = item_row(session, item)
            if (gold is None) != (row.gold is None):
                if session.scalar(select(tables.Task.id).filter_by(item_id=row.id).limit(1)) is not None:
                    raise InputError("somebody has worked on this item already: choose another one")
                project = session.get_one(tables.Project, row.project_id)
                for queue in session.scalars(select(tables.ItemStage).filter_by(item_id=row.id)):
                    queue.gold = gold is not None
                    queue.slots = 0 if gold else 1 if queue.stage == "validation" else project.annotators_per_item
                    if queue.stage == "validation":
                        queue.state = "waiting" if gold or "generation" in project.stages else "open"
            row.gold = gold_to_json(gold) if gold else None
            note(session, who.id, "gold set", project=row.project_id, item=row.id, details={"gold": gold is not None})

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

    def _link_all(self, project: int, token: str | None = None) -> int:
        """In portions; `token`: of the job that they are a part of."""
        with self.reading() as session:
            wanted = sorted(_unlinked(session, session.get_one(tables.Project, project)))
        done, count, pace = 0, 0, Pace()
        while done < len(wanted):
            part = wanted[done : done + pace.size]
            done += len(part)
            with self.reading() as session:
                margins = None
                if session.get_one(tables.Project, project).ordering == "uncertainty":
                    known = linked(session, sorted({item for item, _, _ in part}))
                    for item, _, prediction in part:
                        known.setdefault(item, []).append(prediction)
                    margins = margins_of(session, known)
            with self.writing() as session:
                began = time.perf_counter()
                if token is not None:
                    self._mine(session, token)
                count += self._link(session, session.get_one(tables.Project, project), part, margins)
            pace.rest(time.perf_counter() - began)
        return count

    @staticmethod
    def _link(
        session: Session, project: tables.Project, wanted: Sequence[tuple[int, int, int]], margins: Mapping[int, float] | None
    ) -> int:
        """Links these (item, side, prediction) that are not linked yet.  `margins`: of their items, read before; None: they are read
        here where the order needs them."""
        link = tables.ItemPrediction
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

    def get_item(self, item: str, by: str) -> Item:
        """References, and the systems of what is judged blind, are shown to validators and managers only.  Raises NotFoundError, NotAllowedError."""
        with self.reading() as session:
            who = actor(session, by)
            row = session.execute(
                select(tables.ProjectItem, tables.Project, models.Question)
                .join(tables.Project, tables.Project.id == tables.ProjectItem.project_id)
                .join(models.Question, models.Question.id == tables.ProjectItem.question_id)
                .where(tables.ProjectItem.public_id == item)
                .options(undefer(tables.ProjectItem.references), undefer(tables.ProjectItem.passages))
            ).first()
            if row is None:
                raise NotFoundError(f"there is no item '{item[:80]}'")
            found, project, question = row
            blind = "judging" in project.stages and not can(who.role, "validator")
            predictions = session.execute(
                select(models.Prediction.system, models.Prediction.public_id)
                .join(tables.ItemPrediction, tables.ItemPrediction.prediction_id == models.Prediction.id)
                .where(tables.ItemPrediction.item_id == found.id)
                .order_by(tables.ItemPrediction.side)
            )
            states = session.execute(
                select(tables.ItemStage.stage, tables.ItemStage.state).where(tables.ItemStage.item_id == found.id)
            )
            return Item(
                id=found.public_id,
                project=project.public_id,
                position=found.position,
                question_id=question.public_id,
                question=question.text,
                gold=found.gold is not None,
                predictions=tuple(LinkedPrediction("" if blind else system, name) for system, name in predictions),
                passages=passages_from_json(found.passages),
                references=annotations_from_json(found.references) if can(who.role, "validator") else (),
                states={cast(WorkStage, stage): cast(ItemState, state) for stage, state in states},
            )

    def items(
        self,
        project: str,
        by: str,
        *,
        stage: WorkStage,
        state: ItemState | None = None,
        text: str = "",
        limit: int = 50,
        offset: int = 0,
    ) -> list[ItemSummary]:
        """A stage's items in the order of its queue.  Raises NotAllowedError for annotators, NotFoundError, InputError."""
        check_page(limit, offset)
        check_choice(stage, WorkStage, "the stage")
        with self.reading() as session:
            actor(session, by, "validator")
            queue, item = tables.ItemStage, tables.ProjectItem
            number = project_row(session, project).id
            query = (
                select(queue, item, models.Question.text)
                .join(item, item.id == queue.item_id)
                .join(models.Question, models.Question.id == item.question_id)
                .where(queue.project_id == number, queue.stage == stage, there(session, number, queue.item_id))
                .order_by(queue.rank, queue.item_id)
                .limit(limit)
                .offset(offset)
            )
            if state is not None:
                query = query.where(queue.state == state)
            if text:
                query = query.where(models.Question.folded.contains(text.casefold(), autoescape=True))
            rows = session.execute(query).all()
            task = tables.Task
            found = session.execute(
                select(task.item_id, *_tallies(db.now()))
                .where(task.item_id.in_([q.item_id for q, _, _ in rows]), task.stage == stage)
                .group_by(task.item_id)
            )
            tally = {t.item_id: t for t in found}
            return [
                ItemSummary(
                    i.public_id,
                    i.position,
                    words,
                    q.gold,
                    stage,
                    cast(ItemState, q.state),
                    q.slots,
                    tally[q.item_id].submitted if q.item_id in tally else 0,
                    tally[q.item_id].leased if q.item_id in tally else 0,
                    tally[q.item_id].over if q.item_id in tally else 0,
                    i.margin,
                    i.disagreement,
                )
                for q, i, words in rows
            ]

    def progress(
        self, project: str, by: str, annotator: str | None = None, stage: WorkStage | None = None
    ) -> dict[WorkStage, StageProgress]:
        """Counts by stage (or of this one alone): of everybody, or of one person.  Another's are for validators and managers.  Counted
        in SQL, items from an index."""
        with self.reading() as session:
            actor(session, by, "annotator" if annotator in (None, by) else "validator")
            row = project_row(session, project)
            queue, task, draft, item = tables.ItemStage, tables.Task, tables.Draft, tables.ProjectItem
            stages = [one for one in row.stages if stage in (None, one)]
            totals: dict[str, dict[str, int]] = {}
            for one, state, count in session.execute(
                select(queue.stage, queue.state, func.count())
                .where(
                    queue.project_id == row.id,
                    queue.stage.in_(stages),
                    queue.gold == False,  # noqa: E712
                    there(session, row.id, queue.item_id),
                )
                .group_by(queue.stage, queue.state)
            ):
                totals.setdefault(one, {})[state] = count
            done = select(task.stage, *_tallies(db.now())).where(task.project_id == row.id, task.stage.in_(stages))
            drafts = (
                select(draft.stage, func.count())
                .join(item, item.id == draft.item_id)
                .where(item.project_id == row.id, draft.stage.in_(stages), draft.open == True)  # noqa: E712
                .group_by(draft.stage)
            )
            if annotator is not None:
                who = session.scalar(select(models.Annotator.id).filter_by(name=annotator)) or 0
                done, drafts = done.where(task.annotator_id == who), drafts.where(draft.annotator_id == who)
            tally = {t.stage: t for t in session.execute(done.group_by(task.stage))}
            written: dict[str, int] = {row[0]: row[1] for row in session.execute(drafts)}
            return {
                cast(WorkStage, one): _progress(
                    one,
                    totals.get(one, {}),
                    1 if one == "validation" else row.annotators_per_item,  # one person validates
                    tally.get(one),
                    written.get(one, 0),
                )
                for one in stages
            }

    def submitted(self, project: str, by: str, stage: WorkStage) -> int:
        """`submitted` of everybody's progress alone, from an index: for what is drawn often."""
        with self.reading() as session:
            actor(session, by)
            task = tables.Task
            query = (
                select(func.count())
                .select_from(task)
                .where(
                    task.project_id == project_row(session, project).id,
                    task.stage == stage,
                    task.state == "submitted",
                    task.slot.is_not(None),
                )
            )
            return session.scalar(query) or 0


def _tallies(moment: Any) -> list[Any]:
    task = tables.Task

    def count(condition: Any, name: str) -> Any:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0).label(name)

    sent = task.state == "submitted"
    return [
        count(and_(sent, task.slot.is_not(None)), "submitted"),
        count(and_(task.state == "leased", task.expires > moment), "leased"),
        count(task.state == "returned", "returned"),
        count(task.state == "skipped", "skipped"),
        count(and_(sent, task.slot.is_(None), task.slots > 0), "over"),
        count(and_(sent, task.slots == 0), "gold"),
        func.coalesce(func.sum(case((or_(sent, task.version > 0), task.seconds), else_=0.0)), 0.0).label("seconds"),
    ]


def _progress(stage: str, totals: Mapping[str, int], slots: int, tally: Any, drafts: int) -> StageProgress:
    counts = {state: totals.get(state, 0) for state in tables.ITEM_STATES}
    return StageProgress(
        stage=cast(WorkStage, stage),
        items=sum(counts.values()),
        waiting=counts["waiting"],
        open=counts["open"],
        done=counts["done"],
        slots=slots * sum(counts.values()),
        submitted=int(tally.submitted) if tally else 0,
        leased=int(tally.leased) if tally else 0,
        returned=int(tally.returned) if tally else 0,
        skipped=int(tally.skipped) if tally else 0,
        over=int(tally.over) if tally else 0,
        gold=int(tally.gold) if tally else 0,
        drafts=drafts,
        seconds=float(tally.seconds) if tally else 0.0,
    )
