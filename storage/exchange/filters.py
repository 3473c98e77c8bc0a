"""Filters of an export: whose contributions, from when, of which questions, and the names of people in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.errors import InputError, NotFoundError
from core.text import stored_name
from storage.records.enumerations import WorkStage
from storage.schema import tables, workbench

STAGES = get_args(WorkStage)
ANSWERS = ("final", "all")


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters contributions and questions.  Empty: all.

    `answers`: `final` for the one answer set of each finished item (storage.exchange.final_answers), `all` for everybody's.

    `stages`: where they were made.  `minimum_agreement`: mean F1 of the answer sets of each two annotators; questions with one
    annotator have none and are left out then.  `since` and `until` (exclusive) bound when a contribution was last changed.  `project`: only its
    questions, gold items aside.  `pseudonyms`: names of people are replaced by numbers that stay the same in this database.
    `weighted`: in a majority, people count by their competence.
    """

    annotators: tuple[str, ...] = ()
    system: str = ""  # judgments of this system's answers only (annotations have no system)
    stages: tuple[str, ...] = ()
    minimum_agreement: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    project: str = ""
    pseudonyms: bool = False
    weighted: bool = False
    answers: str = "final"

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotators", tuple(map(stored_name, self.annotators)))  # in the form of the database
        if strange := [s for s in self.stages if s not in STAGES]:
            raise InputError(f"unknown stage '{strange[0]}'; use one of {', '.join(STAGES)}")
        if self.answers not in ANSWERS:
            raise InputError(f"unknown answers '{self.answers[:40]}'; use one of {', '.join(ANSWERS)}")
        if self.minimum_agreement is not None and not 0 <= self.minimum_agreement <= 1:
            raise InputError(f"the minimum agreement is {self.minimum_agreement}; it must be between 0 and 1")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and value.tzinfo is None:
                raise InputError(f"'{name}' has no time zone: write for instance 2026-01-31T00:00:00+00:00")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InputError("'since' is not before 'until': nothing would count")

    @property
    def empty(self) -> bool:
        """Whether the filters keep everything.  Names may still be replaced."""
        return self == Filters(pseudonyms=self.pseudonyms, weighted=self.weighted, answers=self.answers)

    def to_json(self, names: Names | None = None) -> dict[str, Any]:
        """Plain JSON; `names` replaces people."""
        return {
            **asdict(self),
            "annotators": [names(n) if names else n for n in self.annotators],
            "stages": list(self.stages),
            "since": self.since.isoformat() if self.since else None,
            "until": self.until.isoformat() if self.until else None,
        }


class Names:
    """The names of people in a file: their own, or pseudonyms made from their numbers in this database.

    Not a digest of the name: a person who guesses a name could check it.  Names inside free text (notes, questions) stay as they were written.
    """

    def __init__(self, session: Session, pseudonyms: bool) -> None:
        rows = session.execute(select(tables.Annotator.id, tables.Annotator.name).order_by(tables.Annotator.id)).all()
        self.order = {name: number for number, name in rows}
        self.pseudonyms: dict[str, str] = {}  # by name; empty: names stay
        for number, name in rows if pseudonyms else ():
            pseudonym = f"annotator {number:04d}"
            while pseudonym in self.order:  # somebody may have this name
                pseudonym += "'"
            self.pseudonyms[name] = pseudonym

    def __call__(self, name: str) -> str:
        return self.pseudonyms.get(name, name)

    def inside(self, value: Any) -> Any:
        """The same JSON value with every string that is a person's whole name replaced; keys stay."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.inside(v) for v in value]
        return {k: self.inside(v) for k, v in value.items()} if isinstance(value, dict) else value


def check_filters(session: Session, filters: Filters) -> None:
    """Raises InputError for an unknown annotator, NotFoundError for an unknown project."""
    names = set(session.scalars(select(tables.Annotator.name)))
    if strange := [name for name in filters.annotators if name not in names]:
        raise InputError(f"unknown annotator '{strange[0]}'; known: {', '.join(sorted(names)) or 'none'}")
    if filters.project and session.scalar(select(workbench.Project.id).filter_by(public_id=filters.project)) is None:
        raise NotFoundError(f"there is no project '{filters.project[:80]}'")
