"""Reads a project's items as people see them: one item, pages of items, and the progress of the work."""

from __future__ import annotations

from typing import Any, get_args

from sqlalchemy import and_, false, func, or_, select
from sqlalchemy.orm import undefer

from core.errors import NotFoundError
from core.types import Annotation, Passage
from storage.access import blindness
from storage.access.actors import actor
from storage.access.permissions import allowed_to, can
from storage.annotation.places import item_row, project_row
from storage.annotation.queue_order import queue_order
from storage.records.checks import check_choice, check_page
from storage.records.contents import all_from_json
from storage.records.enumerations import ItemState, WorkStage
from storage.records.projects import MIXED_SLOTS, ItemSummary, LinkedPrediction, ProjectItem, StageProgress
from storage.schema import engine, tables, workbench


class Items(engine.Part):
    """The part of the Store that reads a project's items."""

    @allowed_to("annotate")
    def get_item(self, item: str, user: str) -> ProjectItem:
        """An item.  References are shown to validators and managers only, and the systems that are judged also to others who
        needn't judge blind.  Raises NotFoundError, NotAllowedError."""
        with self.reading() as session:
            person = actor(session, user)
            match = session.execute(
                select(workbench.ProjectItem, workbench.Project, tables.Question)
                .join(workbench.Project, workbench.Project.id == workbench.ProjectItem.project_id)
                .join(tables.Question, tables.Question.id == workbench.ProjectItem.question_id)
                .where(workbench.ProjectItem.public_id == item)
                .options(undefer(workbench.ProjectItem.references), undefer(workbench.ProjectItem.passages))
            ).first()
            if match is None:
                raise NotFoundError(f"there is no item '{item[:80]}'")
            row, project, question = match
            sees_all = can(person.role, "validator")
            blind = not sees_all and blindness.is_hidden(session, person, row.id, judged_run=True)
            predictions = session.execute(
                select(tables.Prediction.system, tables.Prediction.public_id)
                .join(workbench.ItemPrediction, workbench.ItemPrediction.prediction_id == tables.Prediction.id)
                .where(workbench.ItemPrediction.item_id == row.id)
                .order_by(workbench.ItemPrediction.side)
            )
            states = session.execute(
                select(workbench.ItemStage.stage, workbench.ItemStage.state).where(workbench.ItemStage.item_id == row.id)
            )
            return ProjectItem(
                id=row.public_id,
                project=project.public_id,
                position=row.position,
                source_id=question.source_id,
                question=question.text,
                gold=row.gold is not None and sees_all,
                predictions=tuple(LinkedPrediction("" if blind else system, name) for system, name in predictions),
                passages=None if row.passages is None else all_from_json(Passage, row.passages),
                references=all_from_json(Annotation, row.references) if sees_all else (),
                states={entry.stage: entry.state for entry in states},
            )

    @allowed_to("annotate")
    def passages_read(self, item: str, user: str) -> tuple[Passage, ...]:
        """The passages that the suggested or judged systems read for an item, without saying which system read which.  Raises
        NotFoundError, NotAllowedError."""
        link, prediction = workbench.ItemPrediction, tables.Prediction
        with self.reading() as session:
            actor(session, user)
            query = select(prediction.trace).join(link, link.prediction_id == prediction.id)
            traces = session.scalars(query.where(link.item_id == item_row(session, item).id))
            retrieved = [r["passage"] for trace in traces for r in trace["passages"]]
            return tuple({p["id"]: Passage(p["id"], p["title"], p["text"]) for p in retrieved}.values())

    @allowed_to("see others' work")
    def items(
        self,
        project: str,
        user: str,
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
            actor(session, user, "validator")
            queue, item = workbench.ItemStage, workbench.ProjectItem
            row = project_row(session, project)
            query = (
                select(queue, item, tables.Question.text)
                .join(item, item.id == queue.item_id)
                .join(tables.Question, tables.Question.id == item.question_id)
                .where(queue.project_id == row.id, queue.stage == stage)
                .order_by(*queue_order(row))
                .limit(limit)
                .offset(offset)
            )
            if state is not None:
                query = query.where(queue.state == state)
            if text:
                query = query.where(tables.Question.folded.contains(text.casefold(), autoescape=True))
            rows = session.execute(query).all()
            ids = [q.item_id for q, _, _ in rows]
            task = workbench.Task
            tasks = (
                select(task.item_id, *tallies(engine.now(), gold_counts=True))
                .where(task.item_id.in_(ids), task.stage == stage)
                .group_by(task.item_id)
            )
            tally = {t.item_id: t for t in session.execute(tasks)}
            assignment, line = workbench.Assignment, workbench.Comment
            assigned: dict[int, list[str]] = {}
            for number, name in session.execute(
                select(assignment.item_id, tables.Annotator.name)
                .join(tables.Annotator, tables.Annotator.id == assignment.annotator_id)
                .where(assignment.item_id.in_(ids), assignment.stage == stage)
                .order_by(assignment.id)
            ):
                assigned.setdefault(number, []).append(name)
            counts = select(line.item_id, func.count()).where(line.item_id.in_(ids)).group_by(line.item_id)
            comments: dict[int, int] = {row[0]: row[1] for row in session.execute(counts)}
            return [
                ItemSummary(
                    i.public_id,
                    i.position,
                    words,
                    q.gold,
                    stage,
                    q.state,
                    q.slots,
                    getattr(tally.get(q.item_id), "submitted", 0),
                    getattr(tally.get(q.item_id), "leased", 0),
                    getattr(tally.get(q.item_id), "over", 0),
                    i.margin,
                    i.disagreement,
                    tuple(assigned.get(q.item_id, ())),
                    comments.get(q.item_id, 0),
                    i.domain,
                )
                for q, i, words in rows
            ]

    @allowed_to("annotate")
    def progress(
        self, project: str, user: str, annotator: str | None = None, stage: WorkStage | None = None
    ) -> dict[WorkStage, StageProgress]:
        """Counts by stage (or for this one alone), of everybody or of one person.  Only validators and managers see another
        person's.  One's own count treats gold items like others, because nobody is to recognise them.  Counted in SQL, items
        from an index."""
        with self.reading() as session:
            actor(session, user, "annotator" if annotator in (None, user) else "validator")
            row = project_row(session, project)
            queue, task, draft, item = workbench.ItemStage, workbench.Task, workbench.Draft, workbench.ProjectItem
            stages = [name for name in row.stages if stage in (None, name)]
            totals: dict[str, dict[str, int]] = {}
            slots: dict[str, dict[str, int]] = {}
            for name, state, count, total in session.execute(
                select(queue.stage, queue.state, func.count(), func.sum(queue.slots))
                .where(queue.project_id == row.id, queue.stage.in_(stages))
                .where(queue.gold == False)  # noqa: E712
                .group_by(queue.stage, queue.state)
            ):
                totals.setdefault(name, {})[state] = count
                slots.setdefault(name, {})[state] = total
            tasks = select(task.stage, *tallies(engine.now(), gold_counts=annotator == user)).where(
                task.project_id == row.id, task.stage.in_(stages)
            )
            drafts = (
                select(draft.stage, func.count())
                .join(item, item.id == draft.item_id)
                .where(item.project_id == row.id, draft.stage.in_(stages), draft.open == True)  # noqa: E712
                .group_by(draft.stage)
            )
            if annotator is not None:
                annotator_id = session.scalar(select(tables.Annotator.id).filter_by(name=annotator)) or 0
                tasks, drafts = tasks.where(task.annotator_id == annotator_id), drafts.where(draft.annotator_id == annotator_id)
            tally = {t.stage: t for t in session.execute(tasks.group_by(task.stage))}
            open_drafts: dict[str, int] = {row[0]: row[1] for row in session.execute(drafts)}
            progress: dict[WorkStage, StageProgress] = {}
            for name in stages:
                states, tasks_of_stage = totals.get(name, {}), tally.get(name)
                counts = {state: states.get(state, 0) for state in get_args(ItemState)}
                counts |= {tallied: getattr(tasks_of_stage, tallied, 0) for tallied in _TALLIED}
                places = slots.get(name, {})
                seconds = float(getattr(tasks_of_stage, "seconds", 0.0))
                counts |= {"slots": sum(places.values()), "open_slots": places.get("open", 0)}
                progress[name] = StageProgress(
                    name, sum(states.values()), drafts=open_drafts.get(name, 0), seconds=seconds, **counts
                )
            return progress

    @allowed_to("annotate")
    def submitted(self, project: str, user: str, stage: WorkStage) -> int:
        """`submitted` of everybody's progress alone, from an index, for displays that are drawn often."""
        with self.reading() as session:
            actor(session, user)
            task = workbench.Task
            query = (
                select(func.count())
                .select_from(task)
                .where(
                    task.project_id == project_row(session, project).id,
                    task.stage == stage,
                    task.state == "submitted",
                    task.slot.is_not(None),
                    task.slots < MIXED_SLOTS,
                )
            )
            return session.scalar(query) or 0


_TALLIED = ("submitted", "leased", "returned", "skipped", "over", "gold")


def tallies(moment: Any, *, gold_counts: bool = False) -> list[Any]:
    """Counts of tasks.  `gold_counts`: gold items count as submitted, not as gold."""
    task = workbench.Task
    gold = false() if gold_counts else task.slots == MIXED_SLOTS

    def count(condition: Any, name: str) -> Any:
        return func.count().filter(condition).label(name)

    is_submitted = task.state == "submitted"
    return [
        count(and_(is_submitted, task.slot.is_not(None), ~gold), "submitted"),
        count(and_(task.state == "leased", task.expires > moment), "leased"),
        count(task.state == "returned", "returned"),
        count(task.state == "skipped", "skipped"),
        count(and_(is_submitted, task.slot.is_(None)), "over"),
        count(and_(is_submitted, gold), "gold"),
        func.coalesce(func.sum(task.seconds).filter(or_(is_submitted, task.version > 0)), 0.0).label("seconds"),
    ]
