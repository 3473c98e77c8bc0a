"""Drafts, and the log of searches and opened passages.  Both are saved as people work and kept after the lease ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.errors import InputError
from core.json_io import dumps
from storage.access.permissions import allowed_to
from storage.annotation.completion import renew
from storage.annotation.places import Place, find_place
from storage.annotation.slots import live_count
from storage.annotation.tasks import same_work
from storage.records.annotation import Draft, DraftConflictError, Interaction, InteractionLog
from storage.records.checks import MAX_ID_CHARS, check_text, plain_problem
from storage.records.enumerations import InteractionKind, WorkStage
from storage.records.rows import record_of
from storage.schema import engine, workbench

MAX_INTERACTIONS = 5_000  # of one person and item: more are not a person's
MAX_DRAFT_CHARS = 2_000_000  # of its JSON
MAX_QUERY_CHARS = 2_000
MAX_TITLE_CHARS = 2_000


def check_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Raises InputError for anything that isn't plain JSON or is too long."""
    plain = dict(body)
    if problem := plain_problem(plain):
        raise InputError(f"the draft cannot be stored: {problem}")
    if (size := len(dumps(plain))) > MAX_DRAFT_CHARS:
        raise InputError(f"the draft cannot be stored: it has {size} characters; at most {MAX_DRAFT_CHARS} are allowed")
    return plain


def put_draft(
    session: Session, task: workbench.Task, row: workbench.Draft | None, body: dict[str, Any], *, open: bool
) -> workbench.Draft:
    """Writes a draft over `row` (the task's) with the next version number.  Equal content changes nothing."""
    moment = engine.now()
    if row is None:
        row = workbench.Draft(item_id=task.item_id, stage=task.stage, annotator_id=task.annotator_id, version=1, created=moment)
        session.add(row)
    elif (row.body, row.open) == (body, open):
        return row
    else:
        row.version += 1
    row.body, row.open, row.updated = body, open, moment
    session.flush()
    return row


def log_of(session: Session, item: int, stage: str, annotator: int) -> InteractionLog:
    line = workbench.Interaction
    rows = session.scalars(
        select(line)
        .where(line.item_id == item, line.stage == stage, line.annotator_id == annotator)
        .order_by(line.id)
        .limit(MAX_INTERACTIONS)
    )
    return InteractionLog(tuple(record_of(Interaction, row) for row in rows))


def _record(session: Session, place: Place, draft: workbench.Draft) -> Draft:
    over, queue = False, workbench.ItemStage
    if draft.open and place.need_task().state in ("expired", "released"):
        is_full = select(live_count(engine.now()) >= queue.slots).where(queue.id == place.queue.id)
        over = bool(session.scalar(is_full))
    return record_of(
        Draft,
        draft,
        item=place.item.public_id,
        project=place.project.public_id,
        question=place.question.text,
        annotator=place.person.name,
        saved=draft.updated,
        over=over,
        submitted=not draft.open,
    )


class Drafts(engine.Part):
    """The part of the Store about drafts and interactions."""

    @allowed_to("annotate")
    def save_draft(
        self,
        item: str,
        annotator: str,
        stage: WorkStage,
        body: Mapping[str, Any],
        expected_version: int | None = None,
    ) -> Draft:
        """Saves a person's unfinished work, in the form that the page reads back, and renews their lease.

        Equal content changes nothing but the lease.  It is stored after the lease ended, too; `Draft.over` says that others
        filled all slots.  `expected_version`: the version that was shown (0: none yet); None overwrites.  Raises
        DraftConflictError (with `mine` and `theirs`) for another version, InputError for anything that isn't a plain JSON or an item that
        was never opened, NotFoundError, NotAllowedError.
        """
        plain = check_body(body)
        with self.writing() as session:
            place = find_place(session, item, annotator, stage)
            task = place.need_task()
            row = place.draft
            is_unchanged = row is not None and (row.body, row.open) == (plain, True)
            if not is_unchanged and expected_version is not None and expected_version != (row.version if row else 0):
                raise DraftConflictError(plain, _record(session, place, row) if row else None, expected_version)
            renew(session, place)
            return _record(session, place, put_draft(session, task, row, plain, open=True))

    @allowed_to("annotate")
    def find_draft(self, item: str, annotator: str, stage: WorkStage) -> Draft | None:
        """A person's draft, including one that was submitted (`Draft.submitted`).  Raises NotFoundError, InputError,
        NotAllowedError."""
        with self.reading() as session:
            place = find_place(session, item, annotator, stage)
            return _record(session, place, place.draft) if place.draft else None

    # ---------------------------------------------------------------- searches and opened passages

    @allowed_to("annotate")
    def log_search(self, item: str, annotator: str, stage: WorkStage, query: str) -> None:
        """Records a search.  Repeating the same one counts once.  Raises InputError, NotFoundError, NotAllowedError."""
        check_text(query, "the query", limit=MAX_QUERY_CHARS, empty=False)
        self._log(item, annotator, stage, "search", query=query)

    @allowed_to("annotate")
    def log_view(self, item: str, annotator: str, stage: WorkStage, passage_id: str, title: str) -> None:
        """Records an opened passage.  Repeating the same one counts once.  Raises as `log_search`."""
        check_text(passage_id, "the passage's id", limit=MAX_ID_CHARS, empty=False)
        check_text(title, "the passage's title", limit=MAX_TITLE_CHARS)
        self._log(item, annotator, stage, "view", passage_id=passage_id, title=title)

    def _log(self, item: str, annotator: str, stage: WorkStage, kind: InteractionKind, **values: str) -> None:
        values = {"query": "", "passage_id": "", "title": "", **values}
        with self.writing() as session:
            task = find_place(session, item, annotator, stage).need_task()
            line = workbench.Interaction
            mine = select(line).where(same_work(line, task))
            last = session.scalar(mine.order_by(line.id.desc()).limit(1))
            repeated = (kind, values["query"], values["passage_id"])
            if last is not None and (last.kind, last.query, last.passage_id) == repeated:
                return
            if (session.scalar(select(func.count()).select_from(mine.subquery())) or 0) < MAX_INTERACTIONS:
                names = {"item_id": task.item_id, "stage": stage, "annotator_id": task.annotator_id}
                session.add(line(**names, kind=kind, **values, created=engine.now()))

    @allowed_to("annotate")
    def interactions(self, item: str, annotator: str, stage: WorkStage) -> InteractionLog:
        """A person's searches and opened passages for an item.  Raises NotFoundError, InputError, NotAllowedError."""
        with self.reading() as session:
            place = find_place(session, item, annotator, stage)
            return log_of(session, place.item.id, stage, place.person.id)
