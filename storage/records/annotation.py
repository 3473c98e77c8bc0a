"""The records that the annotation workbench takes and returns: frozen, plain, no ORM row among them.  All times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.annotating.generation import SuggestionAction
from core.annotating.labels import Label, Preference, QuestionLabel
from core.errors import ConflictError, InputError, NotAllowedError
from core.text import time_text
from core.types import Annotation, Evidence, Passage
from storage.records.enumerations import InteractionKind, SideName, TaskState, WorkStage

# ---------------------------------------------------------------- work


@dataclass(frozen=True, slots=True)
class Task:
    """One person's work on one item at one stage.

    `slot` counts from 0; None: no slot is held (given back, skipped, expired, or surplus).  `version` is that of the last
    submission, 0 before the first.
    """

    item: str
    project: str
    stage: WorkStage
    annotator: str
    question_id: str
    question: str
    state: TaskState
    slot: int | None
    expires: datetime | None
    reason: str  # of a skip or a return
    version: int
    seconds: float  # spent so far, over all submissions
    updated: datetime

    @property
    def over(self) -> bool:
        """Whether it was submitted after others had filled all slots, and so is kept but not counted."""
        return self.state == "submitted" and self.slot is None


@dataclass(frozen=True, slots=True)
class Draft:
    """`body` is the page's.  `over`: all slots were filled by others meanwhile; it is kept.  `submitted`: its
    content was submitted and is no work in progress."""

    item: str
    project: str
    stage: WorkStage
    annotator: str
    question: str
    body: Mapping[str, Any]
    version: int
    saved: datetime
    over: bool = False
    submitted: bool = False


@dataclass(frozen=True, slots=True)
class Interaction:
    """A search (`query`) or an opened passage (`passage_id`, `title`)."""

    kind: InteractionKind
    query: str
    passage_id: str
    title: str
    created: datetime


@dataclass(frozen=True, slots=True)
class InteractionLog:
    """One person's searches and opened passages for one item."""

    events: tuple[Interaction, ...]

    @property
    def viewed_passage_ids(self) -> tuple[str, ...]:
        """Each opened passage once, in the order in which they were first opened."""
        return tuple(dict.fromkeys(e.passage_id for e in self.events if e.kind == "view"))


# ---------------------------------------------------------------- content of the three stages


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A predicted answer offered to an annotator."""

    prediction_id: str
    position: int
    text: str
    question: str  # its disambiguated question, or empty
    probability: float
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class SuggestionUse:
    prediction_id: str
    position: int
    text: str
    action: SuggestionAction


@dataclass(frozen=True, slots=True)
class GenerationWork:
    annotation: Annotation
    suggestions: tuple[SuggestionUse, ...] = ()
    warnings: tuple[str, ...] = ()  # filled in by the store: core.annotating.checks.doubts
    note: str = ""


@dataclass(frozen=True, slots=True)
class ValidationWork:
    """`sources`: those of the `ValidationInput` that was worked on.  If empty, the store uses the present ones."""

    annotation: Annotation
    warnings: tuple[str, ...] = ()
    note: str = ""
    sources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """`question` is None if the answer has no disambiguated question."""

    prediction_id: str
    position: int
    verdict: Label
    question: QuestionLabel | None = None
    note: str = ""
    errors: tuple[str, ...] = ()  # of the error labels of the project


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    text: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgingWork:
    """`preference` names a side as shown; `preferred` (filled in by the store) its prediction, empty for a tie."""

    answers: tuple[JudgedAnswer, ...]
    missing: tuple[MissingAnswer, ...] = ()
    preference: Preference | None = None  # with two systems
    preferred: str = ""
    note: str = ""


Content = GenerationWork | ValidationWork | JudgingWork


@dataclass(frozen=True, slots=True)
class Submission:
    """One version of what a person submitted.  Versions are never changed; `current` marks the last one of a task that was
    neither returned nor reopened; `counted` that it fills one of the item's slots."""

    id: int  # grows with each submission
    item: str
    project: str
    stage: WorkStage
    annotator: str
    question_id: str
    question: str
    version: int
    restores: int | None  # the version that an undo brought back
    content: Content
    seconds: float
    guidelines: int  # version shown; 0: none
    log: InteractionLog
    score: float | None  # of a gold item
    current: bool
    counted: bool
    automatic: bool
    created: datetime


@dataclass(frozen=True, slots=True)
class ValidationInput:
    item: str
    question: str
    annotations: tuple[tuple[str, Annotation], ...]  # (annotator, their annotation), counted ones
    expected_version: int  # pass it to submit
    sources: tuple[tuple[str, int], ...] = ()  # (annotator, version): put them into ValidationWork


@dataclass(frozen=True, slots=True)
class MineAndFinal:
    item: str
    question: str
    mine: Annotation | None
    final: Annotation | None  # None: not validated yet
    automatic: bool
    note: str  # the validator's


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    prediction_id: str
    position: int  # in the prediction, for labels; the order on the sheet is shuffled
    text: str
    question: str | None
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One answer set, without the name of its system."""

    name: SideName
    prediction_id: str
    answers: tuple[ShownAnswer, ...]


@dataclass(frozen=True, slots=True)
class JudgingSheet:
    """The answers to judge, always in the same shuffled order for the same person and item."""

    item: str
    question: str
    sides: tuple[Side, ...]
    passages: tuple[Passage, ...]  # of all sides, without repetitions, in the order of their ids


# ---------------------------------------------------------------- errors


class DraftConflictError(ConflictError):
    """The draft changed since it was shown.  `mine` was to be saved, `theirs` is stored (None: nothing)."""

    def __init__(self, mine: Mapping[str, Any], theirs: Draft | None, expected: int) -> None:
        self.mine, self.theirs, self.expected = mine, theirs, expected
        now = (
            f"version {theirs.version}{', submitted' if theirs.submitted else ''}, saved {time_text(theirs.saved, utc=True, seconds=True)}"
            if theirs
            else "not there"
        )
        super().__init__(
            f"the draft was changed in another window: the stored one is {now}; "
            f"yours was made from version {expected}: look at both, then save again"
        )


class SubmissionConflictError(ConflictError):
    """Another window submitted meanwhile.  `mine` was to be submitted, `theirs` is the latest stored one."""

    def __init__(self, mine: Content, theirs: Submission | None, expected: int) -> None:
        self.mine, self.theirs, self.expected = mine, theirs, expected
        now = f"version {theirs.version} of {time_text(theirs.created, utc=True, seconds=True)}" if theirs else "not there"
        super().__init__(
            f"this item was submitted in another window: the stored one is {now}; "
            f"yours was made from version {expected}: look at both, then submit again"
        )


class SourcesChangedError(ConflictError):
    """Annotations changed while they were validated: load the input again."""


class FieldError(InputError):
    """One of several values is wrong: `field` says which (name, role, password, subject)."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        super().__init__(problem)


class SignInError(NotAllowedError):
    """Name or password are wrong (the message does not say which), or too many attempts: wait `seconds`."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        wait = f"too many attempts: try again in {max(1, round(seconds))} s" if seconds else "name or password is wrong"
        super().__init__(wait)


class SignedOutError(NotAllowedError):
    """Nobody is signed in any more, because they signed out, too much time passed, or the account changed."""

    def __init__(self, message: str = "you are not signed in, or not any more: sign in again") -> None:
        super().__init__(message)
