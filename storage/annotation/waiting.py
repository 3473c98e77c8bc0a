"""The work that waits for a person in all open projects: returned work, own drafts, assigned items, and unread comments."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from storage.access.actors import Actor, actor
from storage.access.permissions import allowed_to
from storage.annotation.comments import unread, visible_comments
from storage.annotation.tasks import same_work
from storage.records.projects import WaitingWork
from storage.schema import engine, workbench

MAX_UNREAD = 500  # comments looked at


def mentions(text: str, name: str) -> bool:
    """Whether a comment mentions this person.

    >>> mentions("@Ann: look again", "Ann"), mentions("@Annabel", "Ann"), mentions("ann@example.org", "example")
    (True, False, False)
    """
    return re.search(rf"(?<!\w)@{re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


class Waiting(engine.Part):
    """The part of the Store about what waits for a person."""

    @allowed_to("annotate")
    def of_person(self, user: str) -> list[WaitingWork]:
        """The open projects where something waits for the person, newest first.  Raises NotAllowedError."""
        task, project = workbench.Task, workbench.Project
        with self.reading() as session:
            person = actor(session, user)
            query = (
                select(project.id, project.public_id, project.name).where(project.state == "open").order_by(project.id.desc())
            )
            projects = session.execute(query).all()
            returned: dict[int, Counter[str]] = defaultdict(Counter)
            mine = (task.annotator_id == person.id, task.state == "returned")
            counts = select(task.project_id, task.stage, func.count()).where(*mine)
            for number, stage, count in session.execute(counts.group_by(task.project_id, task.stage)):
                returned[number][stage] = count
            drafts, assigned = self._drafts(session, person), self._assigned(session, person)
            comments: dict[int, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
            for number, item, text in self._unread(session, person):
                comments[number][item].append(mentions(text, person.name))
            waiting = []
            for number, public_id, name in projects:
                values = returned[number], drafts[number], assigned[number]
                flags = [flag for item in comments[number].values() for flag in item]
                if any(values) or flags:
                    items = tuple(comments[number])
                    waiting.append(WaitingWork(public_id, name, *values, len(flags), sum(flags), items))  # type: ignore[arg-type]
            return waiting

    @staticmethod
    def _drafts(session: Session, person: Actor) -> Counter[int]:
        task, draft = workbench.Task, workbench.Draft
        query = select(task.project_id, func.count()).join(draft, same_work(draft, task))
        query = query.where(task.annotator_id == person.id, task.state.in_(("leased", "expired")), draft.open == True)  # noqa: E712
        return Counter({row[0]: row[1] for row in session.execute(query.group_by(task.project_id))})

    @staticmethod
    def _assigned(session: Session, person: Actor) -> Counter[int]:
        assignment, task, queue = workbench.Assignment, workbench.Task, workbench.ItemStage
        began = select(task.id).where(same_work(task, assignment)).exists()
        query = (
            select(queue.project_id, func.count())
            .join(assignment, (assignment.item_id == queue.item_id) & (assignment.stage == queue.stage))
            .where(assignment.annotator_id == person.id, queue.state == "open", ~began)
        )
        return Counter({row[0]: row[1] for row in session.execute(query.group_by(queue.project_id))})

    @staticmethod
    def _unread(session: Session, person: Actor) -> Iterator[tuple[int, str, str]]:
        """(project, item, text) of unread comments, the oldest first."""
        item, line = workbench.ProjectItem, workbench.Comment
        query = visible_comments(person, item.project_id, item.public_id, line.text).join(item, item.id == line.item_id)
        query = query.join(workbench.Project, workbench.Project.id == item.project_id)
        query = query.where(unread(person), workbench.Project.state == "open").order_by(line.id).limit(MAX_UNREAD)
        yield from (tuple(row) for row in session.execute(query))
