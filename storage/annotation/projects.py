"""Projects and their guidelines.

Orders of a queue: `file`; `random` (by seed and place in the file, so the same seed gives the same order anywhere);
`uncertainty` (smallest margin first, see storage.annotation.queue_order.margin_of); `disagreement` (largest first, see
core.metrics.agreement.answer_sets.disagreement).  Items without the value come last, in the order of the file.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import date
from typing import Unpack, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import ConflictError, InputError
from core.text import stored_name
from core.trace import to_json
from storage.access.actors import actor, refuse_confusable
from storage.access.log import note
from storage.access.permissions import allowed_to
from storage.annotation.completion import update_items
from storage.annotation.linked_predictions import fill_margins, unlink_others
from storage.annotation.places import latest_guidelines, project_row
from storage.annotation.slots import set_slots
from storage.records.checks import check_page, check_text
from storage.records.contents import all_from_json
from storage.records.enumerations import ProjectState, WorkStage
from storage.records.gate import check_annotation
from storage.records.projects import (
    THRESHOLDS,
    GuidelineExample,
    Guidelines,
    Project,
    ProjectChanges,
    ProjectValues,
    checked_project,
)
from storage.records.rows import record_of
from storage.schema import engine, tables, workbench

MAX_GUIDELINE_CHARS = 200_000
MAX_EXAMPLES = 100


def project_record(row: workbench.Project) -> Project:
    return record_of(
        Project,
        row,
        id=row.public_id,
        stages=tuple(row.stages),
        systems=tuple(row.systems),
        error_labels=tuple(row.error_labels),
        order=row.ordering,
        reference_date=date.fromisoformat(row.reference_date) if row.reference_date else None,
        thresholds={name: row.thresholds.get(name, usual) for name, usual in THRESHOLDS.items()},
    )


def _check_guidelines(text: str, examples: Sequence[GuidelineExample]) -> None:
    check_text(text, "the guidelines", limit=MAX_GUIDELINE_CHARS)
    if len(examples) > MAX_EXAMPLES:
        raise InputError(f"{len(examples)} examples; at most {MAX_EXAMPLES} are allowed")
    for example in examples:
        check_text(example.prompt, "an example's question", limit=20_000, empty=False)
        check_text(example.why, "an example's reason", limit=20_000)
        check_annotation(example.annotation, complete=False)  # a wrong example may well be incomplete


class Projects(engine.Part):
    """The part of the Store about projects."""

    @allowed_to("manage projects")
    def create_project(
        self,
        user: str,
        name: str,
        *,
        stages: Sequence[WorkStage] = ("generation",),
        guidelines: str = "",
        examples: Sequence[GuidelineExample] = (),
        **values: Unpack[ProjectValues],
    ) -> Project:
        """Creates an open project without items.  Stages can't be changed later; `values` are those of `ProjectValues`.

        Raises NotAllowedError unless `user` is a manager, InputError for a wrong value or a name that is taken, or looks like one.
        """
        ordered = tuple(stage for stage in get_args(WorkStage) if stage in stages)
        if not ordered or set(stages) - set(ordered):
            raise InputError(f"the stages are {tuple(stages)!r}; use one or more of {', '.join(get_args(WorkStage))}")
        if "judging" in ordered and not values.get("systems"):
            raise InputError("the judging stage needs one or two systems whose stored predictions are judged")
        columns = checked_project({**values, "name": name})
        _check_guidelines(guidelines, examples)
        with self.writing() as session:
            manager = actor(session, user, "manager")
            self._check_name(session, columns["name"], None)
            moment = engine.now()
            row = workbench.Project(
                public_id=uuid.uuid4().hex,
                stages=list(ordered),
                version=1,
                created=moment,
                updated=moment,
                **columns,
            )
            session.add(row)
            session.flush()
            note(session, manager.id, "project created", project=row.id, details={"name": row.name})
            if guidelines or examples:
                self._add_guidelines(session, row, manager.id, guidelines, examples)
            return project_record(row)

    @staticmethod
    def _check_name(session: Session, name: str, project: int | None) -> None:
        """Raises InputError if another project than this one (None: any) has the name, or a name that looks like it."""
        names = list(session.scalars(select(workbench.Project.name).where(workbench.Project.id != project)))
        if name in names:
            raise InputError(f"there is a project named '{name[:80]}' already: choose another name")
        refuse_confusable(name, names)

    @allowed_to("manage projects")
    def update_project(self, user: str, project: str, expected_version: int, **changes: Unpack[ProjectChanges]) -> Project:
        """Changes the name or any of the `ProjectValues`.

        Another order is in force at once.
        More annotators an item reopen finished items that no person validated; fewer are refused while an item has more.  Equal values change
        nothing.
        Items that somebody has opened keep what other systems answered; the others lose it.
        Raises ConflictError when the project was changed since `expected_version`, NotAllowedError, NotFoundError, InputError.
        """
        columns = checked_project(changes)
        with self.writing() as session:
            manager = actor(session, user, "manager")
            row = project_row(session, project)
            columns = {k: v for k, v in columns.items() if getattr(row, k) != v}
            if not columns:
                return project_record(row)
            if row.version != expected_version:
                raise ConflictError(
                    f"the project was changed by somebody else (it is version {row.version}, yours was made from "
                    f"{expected_version}): load it again, then save"
                )
            if "name" in columns:
                self._check_name(session, columns["name"], row.id)
            if "judging" in row.stages and columns.get("systems") == []:
                raise InputError("the judging stage needs one or two systems whose stored predictions are judged")
            for key, value in columns.items():
                setattr(row, key, value)
            row.version += 1
            row.updated = engine.now()
            session.flush()
            if "annotators_per_item" in columns:
                set_slots(session, row, row.annotators_per_item)
            if "systems" in columns:
                unlink_others(session, row)
            note(session, manager.id, "project changed", project=row.id, details=columns)
            record, number = project_record(row), row.id
        if "annotators_per_item" in columns:
            update_items(self.database, number)
        fill_margins(self.database, number)
        return record

    @allowed_to("annotate")
    def projects(self, state: ProjectState | None = None, limit: int = 50) -> list[Project]:
        """The projects, newest first.  Raises InputError for a limit outside 1..500."""
        check_page(limit, 0)
        with self.reading() as session:
            query = select(workbench.Project).order_by(workbench.Project.id.desc()).limit(limit)
            if state is not None:
                query = query.where(workbench.Project.state == state)
            return [project_record(row) for row in session.scalars(query)]

    @allowed_to("annotate")
    def get_project(self, project: str) -> Project:
        """Raises NotFoundError."""
        with self.reading() as session:
            return project_record(project_row(session, project))

    @allowed_to("annotate")
    def find_project_named(self, name: str) -> Project | None:
        with self.reading() as session:
            row = session.scalar(select(workbench.Project).filter_by(name=stored_name(name)))
            return project_record(row) if row else None

    # ---------------------------------------------------------------- guidelines

    @staticmethod
    def _add_guidelines(
        session: Session, row: workbench.Project, author: int, text: str, examples: Sequence[GuidelineExample]
    ) -> workbench.Guideline:
        guideline = workbench.Guideline(
            project_id=row.id,
            version=latest_guidelines(session, row.id) + 1,
            text=text,
            examples=to_json(tuple(examples)),
            annotator_id=author,
            created=engine.now(),
        )
        session.add(guideline)
        session.flush()
        note(session, author, "guidelines saved", project=row.id, details={"version": guideline.version})
        return guideline

    @allowed_to("manage projects")
    def save_guidelines(
        self, user: str, project: str, text: str, examples: Sequence[GuidelineExample] = (), expected_version: int | None = None
    ) -> Guidelines:
        """Saves a new version.  Equal content changes nothing, and no version is deleted.

        Raises ConflictError when there is a newer one than `expected_version` (0: none), NotAllowedError, NotFoundError,
        InputError.
        """
        _check_guidelines(text, examples)
        with self.writing() as session:
            manager = actor(session, user, "manager")
            row = project_row(session, project)
            last = session.scalar(
                select(workbench.Guideline).filter_by(project_id=row.id).order_by(workbench.Guideline.version.desc()).limit(1)
            )
            if last is None or (last.text, last.examples) != (text, to_json(tuple(examples))):
                version = last.version if last else 0
                if expected_version is not None and expected_version != version:
                    raise ConflictError(
                        f"the guidelines were changed by somebody else (they are version {version}, yours was made from "
                        f"{expected_version}): load them again, then save"
                    )
                last = self._add_guidelines(session, row, manager.id, text, examples)
            return _guidelines_record(last, project, session.get_one(tables.Annotator, last.annotator_id).name)

    @allowed_to("annotate")
    def guidelines(self, project: str) -> Guidelines | None:
        """The version in force; None if there is none.  Raises NotFoundError for an unknown project."""
        return next(iter(self._guidelines(project, 1)), None)

    @allowed_to("manage projects")
    def guideline_versions(self, project: str) -> list[Guidelines]:
        """The latest 50 versions, newest first.  Raises NotFoundError."""
        return self._guidelines(project, 50)

    def _guidelines(self, project: str, limit: int) -> list[Guidelines]:
        with self.reading() as session:
            line = workbench.Guideline
            query = (
                select(line, tables.Annotator.name)
                .join(tables.Annotator, tables.Annotator.id == line.annotator_id)
                .where(line.project_id == project_row(session, project).id)
                .order_by(line.version.desc())
            )
            return [_guidelines_record(row, project, name) for row, name in session.execute(query.limit(limit))]


def _guidelines_record(row: workbench.Guideline, project: str, author: str) -> Guidelines:
    return record_of(Guidelines, row, project=project, examples=all_from_json(GuidelineExample, row.examples), author=author)
