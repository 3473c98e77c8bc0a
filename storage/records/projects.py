"""Records of people, projects, items and their counts; those of the work are in `storage.records.annotation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypedDict

from core.annotating.labels import Label
from core.types import Annotation, Passage

Role = Literal["annotator", "validator", "manager"]
WorkStage = Literal["generation", "validation", "judging"]
Order = Literal["file", "random", "uncertainty", "disagreement"]
ProjectState = Literal["open", "closed"]
ItemState = Literal["waiting", "open", "done"]
# leased: open with its annotator; released: given back; expired: the lease ran out and another took the slot; returned: sent
# back for rework; submitted and skipped: done with
TaskState = Literal["leased", "released", "expired", "submitted", "skipped", "returned"]
SuggestionAction = Literal["accepted", "edited", "rejected"]
SideName = Literal["a", "b"]
InteractionKind = Literal["search", "view"]

AUTOMATIC = "automatic validation"  # the annotator's name of validations that nobody had to make


# ---------------------------------------------------------------- people


@dataclass(frozen=True, slots=True)
class Person:
    """`signs_in`: has a password or an OpenID Connect subject."""

    name: str
    role: Role
    active: bool
    has_password: bool
    has_subject: bool
    created: datetime

    @property
    def signs_in(self) -> bool:
        return self.active and (self.has_password or self.has_subject)


@dataclass(frozen=True, slots=True)
class Activity:
    """One line of the append-only log.  `id` grows: give it as `before` to read on."""

    id: int
    who: str  # empty: nobody known (a sign-in that failed)
    action: str
    project: str  # public id, or empty
    item: str  # public id, or empty
    details: Mapping[str, Any]
    created: datetime


# ---------------------------------------------------------------- projects


@dataclass(frozen=True, slots=True)
class Example:
    """One example of the guidelines.  `why` says what is right or wrong about it."""

    right: bool
    prompt: str
    annotation: Annotation
    why: str = ""


@dataclass(frozen=True, slots=True)
class Guidelines:
    project: str
    version: int  # from 1
    text: str  # Markdown
    examples: tuple[Example, ...]
    by: str
    created: datetime


class ProjectSettings(TypedDict, total=False):
    """What may be set of a project when it is made."""

    corpus: str
    systems: Sequence[str]
    annotators_per_item: int
    order: Order
    seed: int
    reference_date: date | None
    thresholds: Mapping[str, float]
    lease_minutes: float
    gold_first: int
    gold_pass: float


class ProjectChanges(ProjectSettings, total=False):
    """What may be changed later."""

    name: str
    state: ProjectState


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    stages: tuple[WorkStage, ...]
    corpus: str
    systems: tuple[str, ...]  # at most two; their stored predictions are suggestions, or what is judged
    annotators_per_item: int
    order: Order
    seed: int  # of the random order
    reference_date: date | None  # answers are of this day; None: no time-dependence warnings
    thresholds: Mapping[str, float]  # see storage.projects.projects.THRESHOLDS
    lease_minutes: float
    gold_first: int  # gold items that a person works on first; 0: no qualification
    gold_pass: float  # share of them that must be right
    state: ProjectState
    version: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class Gold:
    """The reference of a qualification item.  Generation: an answer set; judging: (system, position) -> verdict.  `hint` is shown
    with the feedback."""

    annotations: tuple[Annotation, ...] = ()
    verdicts: Mapping[tuple[str, int], Label] = field(default_factory=dict)
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LinkedPrediction:
    """`system` is empty where it is judged blind."""

    system: str
    prediction_id: str


@dataclass(frozen=True, slots=True)
class Item:
    """A question of a project.  `references`: what its file said; never shown to annotators."""

    id: str
    project: str
    position: int  # from 0, in the order of the file
    question_id: str
    question: str
    gold: bool
    predictions: tuple[LinkedPrediction, ...]
    passages: tuple[Passage, ...] | None  # its own, where the file brought some
    references: tuple[Annotation, ...]  # empty for annotators who may not see them
    states: Mapping[WorkStage, ItemState]


@dataclass(frozen=True, slots=True)
class ItemSummary:
    id: str
    position: int
    question: str
    gold: bool
    stage: WorkStage
    state: ItemState
    slots: int
    submitted: int  # counted ones
    leased: int
    over: int  # submitted beyond the number
    margin: float | None  # see storage.projects.projects: small means uncertain
    disagreement: float | None  # 0..1


@dataclass(frozen=True, slots=True)
class ItemsReport:
    """`known`: questions that the project already had.  `linked`: predictions linked."""

    added: int
    known: int
    linked: int


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Counts of one stage.  Gold items and submissions over the number are not among items and submitted."""

    stage: WorkStage
    items: int
    waiting: int
    open: int
    done: int
    slots: int  # items x annotators
    submitted: int  # filled slots
    leased: int  # open with somebody
    returned: int
    skipped: int
    over: int
    gold: int  # submissions of gold items
    drafts: int
    seconds: float  # spent on what was submitted


@dataclass(frozen=True, slots=True)
class Qualification:
    """`passed` is None while gold items are left to do."""

    done: int
    needed: int
    right: int
    passed: bool | None
