"""The thread of comments on an item, which is only ever added to, and how far each person has read it.
`storage.access.blindness` decides who may see which.

A comment may be resolved by its author, a validator or a manager.  `@Name` mentions somebody.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select
from sqlalchemy.orm import Session, aliased

from core.errors import InputError, NotFoundError
from storage.access import blindness
from storage.access.actors import Actor, actor, in_use
from storage.access.permissions import allowed_to, can
from storage.annotation.places import item_row
from storage.records.checks import check_text
from storage.records.enumerations import Role
from storage.records.projects import Comment, Thread
from storage.schema import engine, tables, workbench

MAX_COMMENT_CHARS = 5_000
MAX_COMMENTS = 500  # of one item
_line, _task, _account, _reading = workbench.Comment, workbench.Task, workbench.Account, workbench.Reading


def visible_comments(person: Actor, *columns: Any) -> Select[Any]:
    """The comments that this person may see now, with their authors' accounts if any.  An annotator sees those on items they
    have opened."""
    query = select(*columns).select_from(_line).outerjoin(_account, _account.annotator_id == _line.annotator_id)
    by_staff = _account.role.in_(("validator", "manager"))
    query = query.where(or_(_line.annotator_id == person.id, by_staff, ~blindness.hidden(person, _line.item_id)))
    return query if can(person.role, "validator") else query.where(_opened(person))


def _opened(person: Actor) -> ColumnElement[bool]:
    return select(_task.id).where(_task.item_id == _line.item_id, _task.annotator_id == person.id).correlate(_line).exists()


def unread(person: Actor) -> ColumnElement[bool]:
    """Selects comments by other people that are neither resolved nor read yet."""
    read = select(_reading.id).where(
        _reading.item_id == _line.item_id, _reading.annotator_id == person.id, _reading.comments >= _line.id
    )
    resolved = select(workbench.Resolution.id).where(workbench.Resolution.comment_id == _line.id)
    return and_(_line.annotator_id != person.id, ~read.correlate(_line).exists(), ~resolved.correlate(_line).exists())


class Comments(engine.Part):
    """The part of the Store about comments."""

    @allowed_to("annotate")
    def comment(self, item: str, user: str, text: str) -> None:
        """Adds a comment.  Raises InputError for a blank comment, for too many, and if an annotator never opened the item;
        NotFoundError, NotAllowedError."""
        check_text(text, "the comment", limit=MAX_COMMENT_CHARS, empty=False)
        with self.writing() as session:
            person, row = actor(session, user), item_row(session, item)
            tasks = select(_task.id).filter_by(item_id=row.id, annotator_id=person.id)
            if not can(person.role, "validator") and session.scalar(tasks.limit(1)) is None:
                raise InputError("open the item first (next_item or claim_item)")
            if (session.scalar(select(func.count()).select_from(_line).filter_by(item_id=row.id)) or 0) >= MAX_COMMENTS:
                raise InputError(f"this item has {MAX_COMMENTS} comments; no more are taken")
            session.add(_line(item_id=row.id, annotator_id=person.id, text=text.strip(), created=engine.now()))

    @allowed_to("annotate")
    def thread(self, item: str, user: str) -> Thread:
        """The comments that this person may see now; none for an annotator who never opened the item.  Raises NotFoundError,
        NotAllowedError."""
        resolver = aliased(tables.Annotator)
        with self.reading() as session:
            person, row = actor(session, user), item_row(session, item)
            query = (
                visible_comments(person, _line, tables.Annotator.name, _account.role, resolver.name, unread(person))
                .join(tables.Annotator, tables.Annotator.id == _line.annotator_id)
                .outerjoin(workbench.Resolution, workbench.Resolution.comment_id == _line.id)
                .outerjoin(resolver, resolver.id == workbench.Resolution.annotator_id)
                .where(_line.item_id == row.id)
                .order_by(_line.id)
            )
            default: Role = "annotator" if in_use(session) else "manager"
            rows = session.execute(query).all()
            comments = tuple(Comment(c.id, name, role or default, c.text, c.created, by or "") for c, name, role, by, _ in rows)
            return Thread(
                comments, sum(bool(is_unread) for *_, is_unread in rows), self._hidden(session, person, row, len(rows))
            )

    @staticmethod
    def _hidden(session: Session, person: Actor, item: workbench.ProjectItem, shown: int) -> int:
        """The number of further comments that this person may ask to see.  It is always 0 on a gold item, as on most items."""
        if can(person.role, "validator") or item.gold is not None or blindness.unfinished(session, person, [item.id]):
            return 0
        has_task = session.scalar(select(_task.id).filter_by(item_id=item.id, annotator_id=person.id).limit(1)) is not None
        count = session.scalar(select(func.count()).select_from(_line).filter_by(item_id=item.id)) or 0
        return count - shown if has_task else 0

    @allowed_to("annotate")
    def mark_read(self, item: str, user: str) -> None:
        """Marks everything that this person may see of the thread now as read.  Raises NotFoundError, NotAllowedError."""
        with self.writing() as session:
            person, row = actor(session, user), item_row(session, item)
            last = session.scalar(visible_comments(person, func.max(_line.id)).where(_line.item_id == row.id))
            blindness.read_up_to(session, person, row.id, comments=last)

    @allowed_to("annotate")
    def resolve(self, comment: int, user: str, resolved: bool = True) -> None:
        """Resolves a comment that this person may see, or reopens it.  Its author, validators and managers may.  Raises
        NotFoundError, InputError, NotAllowedError."""
        with self.writing() as session:
            person = actor(session, user)
            author = session.scalar(visible_comments(person, _line.annotator_id).where(_line.id == comment))
            if author is None:
                raise NotFoundError(f"there is no comment {comment}")
            if author != person.id and not can(person.role, "validator"):
                raise InputError("only its author, a validator or a manager can resolve a comment")
            session.execute(delete(workbench.Resolution).where(workbench.Resolution.comment_id == comment))
            if resolved:
                session.add(workbench.Resolution(comment_id=comment, annotator_id=person.id, created=engine.now()))
