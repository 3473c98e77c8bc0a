"""The tables of the annotation workbench.

A `project` has `project_item`s; each item has an `item_stage` for each of the project's stages, which is the queue; a `task` is
one person's work on an item at a stage and holds at most one of its slots.  That no more than the project's number of people
hold one is enforced by the database: slots are distinct (unique), and each is below the stage's number of slots (a check,
with a foreign key that carries the number along).  `submission`, `interaction`, `guideline`, `activity` and `comment` are only ever
added to; triggers refuse to change or delete rows of them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import DDL, CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, event
from sqlalchemy.orm import Mapped, mapped_column

from storage.records.enumerations import InteractionKind, ItemState, Order, ProjectState, Role, TaskState, WorkStage
from storage.records.projects import LEASE_MINUTES
from storage.schema.base import Base, NumberedTable

APPEND_ONLY = ("guideline", "submission", "interaction", "activity", "comment")


class Account(NumberedTable):
    """Role and ways to sign in of an annotator.  A name without an account has the role annotator."""

    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"), unique=True)
    role: Mapped[Role]
    password: Mapped[str | None]  # argon2id, with its salt and parameters
    subject: Mapped[str | None] = mapped_column(unique=True)  # of OpenID Connect: issuer and subject
    active: Mapped[bool]
    created: Mapped[datetime]
    updated: Mapped[datetime]


class SignInWait(NumberedTable):
    """Failed sign-ins of a name, known or not: the digest of its case-folded form."""

    __table_args__ = (CheckConstraint("failures >= 0", "failures"),)

    key: Mapped[str] = mapped_column(unique=True)
    failures: Mapped[int]
    until: Mapped[datetime] = mapped_column(index=True)


class SignIn(NumberedTable):
    """A sign-in that lasts (storage.access.sign_ins)."""

    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"), index=True)
    key: Mapped[str] = mapped_column(unique=True)
    secret: Mapped[str] = mapped_column(unique=True)  # digest of its code, then of its cookie's token
    created: Mapped[datetime]
    expires: Mapped[datetime] = mapped_column(index=True)


class Project(NumberedTable):
    __table_args__ = (
        CheckConstraint("length(name) > 0", "name"),
        CheckConstraint("annotators_per_item >= 1", "annotators_per_item"),
        CheckConstraint("gold_rate >= 0 AND gold_rate <= 0.5", "gold_rate"),
        CheckConstraint("lease_minutes > 0", "lease_minutes"),
        CheckConstraint("version >= 1", "version"),
    )

    public_id: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str] = mapped_column(unique=True)
    stages: Mapped[list[Any]]
    corpus: Mapped[str] = mapped_column(default="")
    systems: Mapped[list[Any]] = mapped_column(default=list)
    annotators_per_item: Mapped[int] = mapped_column(default=1)
    ordering: Mapped[Order] = mapped_column(default="file")
    seed: Mapped[int] = mapped_column(default=0)
    reference_date: Mapped[str | None]  # ISO 8601, a day
    thresholds: Mapped[dict[str, Any]] = mapped_column(default=dict)
    lease_minutes: Mapped[float] = mapped_column(default=LEASE_MINUTES)
    gold_rate: Mapped[float] = mapped_column(default=0.0)
    error_labels: Mapped[list[Any]] = mapped_column(default=list)
    state: Mapped[ProjectState] = mapped_column(default="open")
    version: Mapped[int]
    created: Mapped[datetime]
    updated: Mapped[datetime]


class Guideline(NumberedTable):
    __table_args__ = (
        UniqueConstraint("project_id", "version"),
        CheckConstraint("version >= 1", "version"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    version: Mapped[int]
    text: Mapped[str]
    examples: Mapped[list[Any]]
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    created: Mapped[datetime]


class ProjectItem(NumberedTable):
    __table_args__ = (
        UniqueConstraint("project_id", "question_id"),
        UniqueConstraint("project_id", "position"),
        CheckConstraint("position >= 0", "position"),
        CheckConstraint("disagreement >= 0 AND disagreement <= 1", "disagreement"),
    )

    public_id: Mapped[str] = mapped_column(unique=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"), index=True)
    position: Mapped[int]
    gold: Mapped[dict[str, Any] | None]  # reference of a gold item
    references: Mapped[list[Any]] = mapped_column(deferred=True)  # annotations that the question file held
    passages: Mapped[list[Any] | None] = mapped_column(deferred=True)  # its own, where the file had some
    # of its prediction, by the person who added it to the project: {"struck": positions, "added": texts}
    corrections: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    domain: Mapped[str] = mapped_column(default="")  # where its file had one
    margin: Mapped[float | None]
    disagreement: Mapped[float | None]
    created: Mapped[datetime]


class ItemPrediction(NumberedTable):
    """The stored prediction of the project's system `side` (0 or 1) for an item."""

    __table_args__ = (
        UniqueConstraint("item_id", "side"),
        CheckConstraint("side IN (0, 1)", "side"),
    )

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    side: Mapped[int]
    prediction_id: Mapped[int] = mapped_column(ForeignKey("prediction.id"), index=True)


class ItemStage(NumberedTable):
    """An item in the queue of one stage; its place there is storage.annotation.queue_order's.  Gold items are for
    everybody: they have MIXED_SLOTS."""

    __table_args__ = (
        UniqueConstraint("item_id", "stage"),
        UniqueConstraint("item_id", "stage", "slots"),  # what task's foreign key refers to
        Index(None, "project_id", "stage", "gold", "state", "item_id"),
        CheckConstraint("slots >= 0", "slots"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    gold: Mapped[bool]
    slots: Mapped[int]
    state: Mapped[ItemState]


class Assignment(NumberedTable):
    """A slot of an item is reserved for a person whom it is assigned to (storage.annotation.assignments)."""

    __table_args__ = (UniqueConstraint("item_id", "stage", "annotator_id"),)

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"), index=True)
    created: Mapped[datetime]


class Comment(NumberedTable):
    __table_args__ = (
        CheckConstraint("length(text) > 0", "text"),
        Index(None, "item_id", "id"),
    )

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    text: Mapped[str]
    created: Mapped[datetime]


class Resolution(NumberedTable):
    """A comment that was settled."""

    comment_id: Mapped[int] = mapped_column(ForeignKey("comment.id"), unique=True)
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    created: Mapped[datetime]


class Reading(NumberedTable):
    """How much of other people's work on an item a person has seen (storage.access.blindness)."""

    __table_args__ = (UniqueConstraint("item_id", "annotator_id"), Index(None, "annotator_id", "others"))

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    comments: Mapped[int] = mapped_column(default=0)  # the last comment's id at the time
    others: Mapped[bool] = mapped_column(default=False)  # asked to see other people's work: the person's own work is final
    updated: Mapped[datetime]


class Task(NumberedTable):
    __table_args__ = (
        ForeignKeyConstraint(
            ["item_id", "stage", "slots"], ["item_stage.item_id", "item_stage.stage", "item_stage.slots"], onupdate="CASCADE"
        ),
        UniqueConstraint("item_id", "stage", "annotator_id"),
        UniqueConstraint("item_id", "stage", "slot"),  # NULLs are distinct
        CheckConstraint("slot >= 0 AND slot < slots", "slot"),
        CheckConstraint("state IN ('leased', 'submitted', 'returned') OR slot IS NULL", "holds"),
        CheckConstraint("state <> 'leased' OR expires IS NOT NULL", "expires"),
        CheckConstraint("version >= 0", "version"),
        CheckConstraint("seconds >= 0", "seconds"),
        Index(None, "annotator_id", "project_id", "stage", "state"),
        Index(None, "project_id", "stage", "state", "slot"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    slots: Mapped[int]  # of the item's stage
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    slot: Mapped[int | None]
    state: Mapped[TaskState]
    expires: Mapped[datetime | None]
    reason: Mapped[str]
    seed: Mapped[int]  # of the order that this person sees
    version: Mapped[int]  # of the last submission; 0: none
    seconds: Mapped[float]  # of all submissions
    created: Mapped[datetime]
    updated: Mapped[datetime]


class Draft(NumberedTable):
    __table_args__ = (
        UniqueConstraint("item_id", "stage", "annotator_id"),
        CheckConstraint("version >= 1", "version"),
        Index(None, "annotator_id", "open", "updated"),
    )

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    body: Mapped[dict[str, Any]]
    open: Mapped[bool]  # False: submitted, kept so that versions go on
    version: Mapped[int]
    created: Mapped[datetime]
    updated: Mapped[datetime]


class Submission(NumberedTable):
    __table_args__ = (
        UniqueConstraint("item_id", "stage", "annotator_id", "version"),
        CheckConstraint("version >= 1", "version"),
        CheckConstraint("restores IS NULL OR (restores >= 1 AND restores < version)", "restores"),
        CheckConstraint("seconds >= 0", "seconds"),
        CheckConstraint("score >= 0 AND score <= 1", "score"),
        Index(None, "project_id", "stage", "id"),
        Index(None, "annotator_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    version: Mapped[int]
    restores: Mapped[int | None]
    body: Mapped[dict[str, Any]]  # storage.records.contents
    seconds: Mapped[float]  # since the last submission
    guidelines: Mapped[int]  # version shown; 0: there were none
    score: Mapped[float | None]
    automatic: Mapped[bool]
    created: Mapped[datetime]


class Interaction(NumberedTable):
    """A search or an opened passage."""

    __table_args__ = (Index(None, "item_id", "stage", "annotator_id", "id"),)

    item_id: Mapped[int] = mapped_column(ForeignKey("project_item.id"))
    stage: Mapped[WorkStage]
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    kind: Mapped[InteractionKind]
    query: Mapped[str]
    passage_id: Mapped[str]
    title: Mapped[str]
    created: Mapped[datetime]


class Activity(NumberedTable):
    __table_args__ = (
        CheckConstraint("length(action) > 0", "action"),
        Index(None, "project_id", "id"),
        Index(None, "annotator_id", "id"),
        Index(None, "item_id", "id"),
    )

    annotator_id: Mapped[int | None] = mapped_column(ForeignKey("annotator.id"))
    action: Mapped[str]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id"))
    item_id: Mapped[int | None] = mapped_column(ForeignKey("project_item.id"))
    details: Mapped[dict[str, Any]]
    created: Mapped[datetime]


def _refuse_changes(table: str) -> None:
    message = f"rows of {table} are never changed or deleted"
    statements = [
        (
            "sqlite",
            f"CREATE TRIGGER refuse_{change}_{table} BEFORE {change} ON {table} BEGIN SELECT RAISE(ABORT, '{message}'); END",
        )
        for change in ("update", "delete")
    ]
    raises = f"BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; END"
    function = f"CREATE FUNCTION refuse_change_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ {raises} $$"
    trigger = f"CREATE TRIGGER refuse_change_{table} BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
    statements += [("postgresql", function), ("postgresql", f"{trigger} EXECUTE FUNCTION refuse_change_{table}()")]
    for dialect, statement in statements:
        ddl = DDL(statement).execute_if(dialect=dialect)  # type: ignore[no-untyped-call]
        event.listen(Base.metadata.tables[table], "after_create", ddl)


for _table in APPEND_ONLY:
    _refuse_changes(_table)
