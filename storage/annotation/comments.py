"""A thread of comments on an item, only ever added to.

Who writes or judges answers does so without knowing what others answer, and comments tell it.  Until an annotator has submitted their own
work on the item they see their own comments and those of validators and managers alone; on a gold item, which everybody gets, for good.
Validators and managers see all, but while they have the item open to write or judge.
"""

from __future__ import annotations

from sqlalchemy import func, or_, select

from core.errors import InputError
from storage.access.actors import actor, in_use
from storage.access.permissions import allowed_to, can
from storage.annotation.places import item_row
from storage.records.checks import check_text
from storage.records.enumerations import Role
from storage.records.projects import Comment
from storage.schema import engine, tables, workbench

MAX_COMMENT_CHARS = 5_000
MAX_COMMENTS = 500  # of one item


class Comments(engine.Part):
    """The part of the Store about comments."""

    @allowed_to("annotate")
    def comment(self, item: str, user: str, text: str) -> None:
        """Adds a comment.  Raises InputError for a blank one, one too many, and from an annotator who never opened the item;
        NotFoundError, NotAllowedError."""
        check_text(text, "the comment", limit=MAX_COMMENT_CHARS, empty=False)
        line, task = workbench.Comment, workbench.Task
        with self.writing() as session:
            person, row = actor(session, user), item_row(session, item)
            tasks = select(task.id).filter_by(item_id=row.id, annotator_id=person.id)
            if not can(person.role, "validator") and session.scalar(tasks.limit(1)) is None:
                raise InputError("open the item first (next_item or claim_item)")
            if (session.scalar(select(func.count()).select_from(line).filter_by(item_id=row.id)) or 0) >= MAX_COMMENTS:
                raise InputError(f"this item has {MAX_COMMENTS} comments; no more are taken")
            session.add(line(item_id=row.id, annotator_id=person.id, text=text.strip(), created=engine.now()))

    @allowed_to("annotate")
    def comments(self, item: str, user: str) -> list[Comment]:
        """Those that this person may see now, the oldest first; to an annotator who never opened the item, none.  Raises NotFoundError,
        NotAllowedError."""
        line, task, account = workbench.Comment, workbench.Task, workbench.Account
        with self.reading() as session:
            person, row = actor(session, user), item_row(session, item)
            query = (
                select(tables.Annotator.name, account.role, line.text, line.created)
                .join(tables.Annotator, tables.Annotator.id == line.annotator_id)
                .outerjoin(account, account.annotator_id == line.annotator_id)
                .where(line.item_id == row.id)
                .order_by(line.id)
            )
            mine = select(task.state).where(task.item_id == row.id, task.annotator_id == person.id, task.stage != "validation")
            states = set(session.scalars(mine))
            blind = bool(states & {"leased", "returned"})
            if not can(person.role, "validator"):
                if not states:
                    return []
                blind = row.gold is not None or states != {"submitted"}
            if blind:
                query = query.where(or_(line.annotator_id == person.id, account.role.in_(("validator", "manager"))))
            default: Role = "annotator" if in_use(session) else "manager"
            return [Comment(name, role or default, text, created) for name, role, text, created in session.execute(query)]
