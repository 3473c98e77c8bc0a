"""Records of people, projects, items and their counts.  `storage.records.annotation` has those of the work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypedDict

from core.annotating.labels import LABELS
from core.errors import InputError
from core.text import stored_name
from core.types import Annotation, Passage, ReferenceQuestion
from storage.records.checks import MAX_ID_CHARS, MAX_NAME_CHARS, check_choice, check_text
from storage.records.enumerations import ItemState, Order, ProjectState, Role, WorkStage

# what a new project has unless its manager says otherwise
LEASE_MINUTES = 30.0  # for which an opened item is reserved
MIXED_SLOTS = 1_000_000  # of a gold item: one for each person, never all taken
THRESHOLDS: Mapping[str, float] = {
    "alias_words": 7,  # an alias of so many words gets a warning
    "min_seconds_no_pairs": 0,  # before a single or no answer may be submitted; AmbigQA: 60
    "must_read": 1,  # passages to open before submitting; 0 switches it off
}

MAX_ANNOTATORS = 100
MAX_GOLD_RATE = 0.5
MAX_ERROR_LABELS, MAX_ERROR_LABEL_CHARS = 20, 60
MAX_SEED = 2**31 - 1  # of PostgreSQL's integer

AUTOMATIC_ANNOTATOR = "automatic validation"  # the annotator's name of validations without a person


# ---------------------------------------------------------------- people


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    role: Role
    active: bool
    has_password: bool
    has_subject: bool
    created: datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """One line of the append-only log.  `id` grows: pass it as `before` for the next page."""

    id: int
    person: str  # empty: unknown (a failed sign-in)
    action: str
    project: str  # public id, or empty
    item: str  # public id, or empty
    details: Mapping[str, Any]
    created: datetime


# ---------------------------------------------------------------- projects


@dataclass(frozen=True, slots=True)
class GuidelineExample:
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
    examples: tuple[GuidelineExample, ...]
    author: str
    created: datetime


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
    thresholds: Mapping[str, float]  # see THRESHOLDS
    lease_minutes: float
    gold_rate: float  # how often a person gets a gold item in the place of an ordinary one
    error_labels: tuple[str, ...]  # that a judge may give beside Ambiscope's
    state: ProjectState
    version: int
    created: datetime
    updated: datetime


class ProjectValues(TypedDict, total=False):
    """The values of a project that a manager chooses and may change later."""

    corpus: str
    systems: Sequence[str]
    annotators_per_item: int
    order: Order
    seed: int
    reference_date: date | None
    thresholds: Mapping[str, float]
    lease_minutes: float
    gold_rate: float
    error_labels: Sequence[str]


class ProjectChanges(ProjectValues, total=False):
    name: str
    state: ProjectState


def checked_project(values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a project's values.  Raises InputError naming the wrong one."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        match name:
            case "name":
                project_name = stored_name(check_text(value, "the project's name", limit=MAX_NAME_CHARS, line=True))
                columns[name] = check_text(project_name, "the project's name", limit=MAX_NAME_CHARS, empty=False)
            case "corpus":
                columns[name] = check_text(value, "the corpus", limit=MAX_ID_CHARS, line=True)
            case "systems":
                systems = [check_text(s, "a system's name", limit=MAX_ID_CHARS, empty=False, line=True) for s in value]
                if len(systems) > 2 or len(set(systems)) != len(systems):
                    raise InputError("a project takes at most two systems, and they differ")
                columns[name] = systems
            case "annotators_per_item" | "seed":
                low, high = (1, MAX_ANNOTATORS) if name == "annotators_per_item" else (0, MAX_SEED)
                if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                    raise InputError(f"{name} is {value!r}; use a whole number from {low} to {high}")
                columns[name] = value
            case "order" | "state":
                check_choice(value, Order if name == "order" else ProjectState, f"the {name}")
                columns["ordering" if name == "order" else name] = value
            case "reference_date":
                if value is not None and not isinstance(value, date):
                    raise InputError(f"the reference date is {value!r}; use a date, or None")
                columns[name] = value.isoformat()[:10] if value else None
            case "thresholds":
                columns[name] = _thresholds(value)
            case "lease_minutes":
                if not 0 < value <= 60 * 24 * 30:
                    raise InputError(f"lease_minutes is {value}; it must be more than 0 and at most a month")
                columns[name] = float(value)
            case "gold_rate":
                if not 0 <= value <= MAX_GOLD_RATE:
                    raise InputError(f"gold_rate is {value}; it must be in 0..{MAX_GOLD_RATE}")
                columns[name] = float(value)
            case "error_labels":
                columns[name] = _error_labels(value)
            case _:
                raise InputError(f"a project has no '{name}' to change")
    return columns


def _error_labels(value: Sequence[str]) -> list[str]:
    labels = [check_text(v.strip(), "an error label", limit=MAX_ERROR_LABEL_CHARS, empty=False, line=True) for v in value]
    if len(labels) > MAX_ERROR_LABELS:
        raise InputError(f"{len(labels)} error labels; at most {MAX_ERROR_LABELS} are allowed")
    if len({label.casefold() for label in (*labels, *LABELS)}) != len(labels) + len(LABELS):
        raise InputError(f"the error labels must differ from each other and from {', '.join(LABELS)}")
    return labels


def _thresholds(value: Mapping[str, float]) -> dict[str, float]:
    for key, number in value.items():
        if key not in THRESHOLDS:
            raise InputError(f"unknown threshold '{key}'; known: {', '.join(THRESHOLDS)}")
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) or number < 0:
            raise InputError(f"the threshold {key} is {number!r}; it must be a number from 0")
    return dict(value)


@dataclass(frozen=True, slots=True)
class LinkedPrediction:
    """`system` is empty if it is judged blind."""

    system: str
    prediction_id: str


@dataclass(frozen=True, slots=True)
class ProjectItem:
    """A question of a project.  `references`: the annotations of its file; they and `gold` are never shown to annotators."""

    id: str
    project: str
    position: int  # from 0, in the order of the file
    source_id: str  # of the question: the id it came with, or empty
    question: str
    gold: bool
    predictions: tuple[LinkedPrediction, ...]
    passages: tuple[Passage, ...] | None  # its own, where the file had some
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
    over: int  # submitted without a slot
    margin: float | None  # see storage.annotation.projects: small means uncertain
    disagreement: float | None  # 0..1
    assigned: tuple[str, ...]  # people
    comments: int
    domain: str  # of the question, where its file had one


@dataclass(frozen=True, slots=True)
class TableQuestion(ReferenceQuestion):
    """A question out of a table (storage.exchange.imports.question_tables), from this `row` of it.  `gold`: its annotations are the right answers;
    `assignee`: who gets it at the project's first stage, or empty."""

    row: int = 0
    assignee: str = ""
    gold: bool = False


@dataclass(frozen=True, slots=True)
class ItemsReport:
    """`known`: questions that the project already had, or duplicates.  `linked`: predictions linked.  `unmatched`: gold questions of which no
    linked system gave a right answer: anyone who judges them correct is counted as wrong."""

    added: int
    known: int
    linked: int
    unmatched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageProgress:
    """Counts of one stage.  Gold items and surplus submissions are not among items and submitted."""

    stage: WorkStage
    items: int
    waiting: int
    open: int
    done: int
    slots: int  # of all items together: how many people they take
    open_slots: int  # of the open ones
    submitted: int  # filled slots
    leased: int  # open with somebody
    returned: int
    skipped: int
    over: int
    gold: int  # submissions of gold items
    drafts: int
    seconds: float  # spent on what was submitted


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """One person at one stage.  `works`: they may work at it now; what is assigned to somebody who may not is open to everybody.
    `submitted` as in `StageProgress`."""

    person: str
    stage: WorkStage
    works: bool
    assigned: int
    unfinished: int  # assigned, neither submitted nor skipped
    submitted: int
    leased: int
    returned: int
    skipped: int
    gold: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Comment:
    id: int
    person: str
    role: Role  # now
    text: str
    created: datetime
    resolved_by: str  # "": nobody yet


@dataclass(frozen=True, slots=True)
class Thread:
    """The comments on an item that a person may see now, oldest first.  `hidden`: the number of further comments that they may
    ask to see."""

    comments: tuple[Comment, ...]
    unread: int
    hidden: int


@dataclass(frozen=True, slots=True)
class WaitingWork:
    """The work that waits for a person in an open project.  `returned`: counts by stage.  `comments`: the unread ones,
    `mentions` among them.  `items`: those with unread comments."""

    project: str
    name: str
    returned: Mapping[WorkStage, int]
    drafts: int
    assigned: int
    comments: int
    mentions: int
    items: tuple[str, ...]
