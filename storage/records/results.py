"""The records that the store takes and returns besides core.types: frozen, plain, no ORM row among them.  All times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from core.annotating.labels import Label
from core.errors import ConflictError, FormatError
from core.text import time_text
from core.types import Prediction
from storage.records.checks import MAX_NOTE_CHARS, check_choice, check_text
from storage.records.enumerations import State


@dataclass(frozen=True, slots=True)
class StoredPrediction:
    id: str  # 32 hexadecimal digits, good for a link
    created: datetime
    prediction: Prediction
    question_id: str = ""  # the question's own id, where that was free; else a digest


@dataclass(frozen=True, slots=True)
class PredictionSummary:
    id: str
    question: str
    system: str
    corpus: str
    answers: tuple[str, ...]
    created: datetime


@dataclass(frozen=True, slots=True)
class Judgment:
    """One annotator's label of one answer.  `position` counts the prediction's answers from 0; `version` counts from 1."""

    prediction_id: str
    position: int
    annotator: str
    verdict: Label | None  # None only in a draft or a skipped one
    note: str
    state: State
    version: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    id: str
    system: str
    corpus: str
    questions: str
    metrics: Mapping[str, Any]
    created: datetime
    label: str = ""  # a person's name for the run
    tags: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: str = ""
    checkpoint_digest: str = ""
    commit: str = ""
    seed: int | None = None
    n: int | None = None
    failed: int | None = None
    parameters: int | None = None
    peak_memory_mb: float | None = None  # of 10^6 bytes
    seconds_median: float | None = None
    seconds_p95: float | None = None
    finished: datetime | None = None
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)  # metric -> "all", "multi" -> score

    def mean(self, metric: str, scope: str = "all") -> float | None:
        """The mean of a metric; None if it is undefined or unknown in this run."""
        score = self.scores.get(metric, {}).get(scope)
        return score.mean if score else None


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over `n` questions with its 95% interval, which is None if there is only one question."""

    n: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class EvaluationFilter:
    """Empty fields pass everything.  `text` is searched in label, system, corpus, questions, checkpoint and commit."""

    text: str = ""
    systems: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One question of a stored evaluation.  `errors`: the buckets of core.metrics.errors; None if they aren't known."""

    position: int
    question_id: str
    question: str
    source: str | None
    ambiguity: str | None
    ambiguous: bool
    error: str | None
    seconds: float | None
    answers: int | None
    references: int | None
    errors: Mapping[str, int | None]
    body: Mapping[str, Any] = field(default_factory=dict)  # the report's row; empty in lists


@dataclass(frozen=True, slots=True)
class GroupMean:
    """A metric's mean over the questions of one group (a source, a kind of ambiguity) of one run."""

    evaluation_id: str
    group: str
    n: int
    mean: float


@dataclass(frozen=True, slots=True)
class Health:
    where: str
    sqlite: str  # library version; empty for another database
    journal: str
    integrity: str  # "ok", or the first problem found
    bytes: int  # the file and its write-ahead log
    revision: str  # of the schema
    backup_age_seconds: float | None  # None: no backup was ever made
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.integrity == "ok"

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an export or a backup.  An export's is beside it as FILE.manifest.json."""

    format: str
    file: str
    sha256: str
    bytes: int
    counts: Mapping[str, int]
    filters: Mapping[str, Any]
    rule: str  # how disagreement between annotators was settled
    schema: str  # schema revision of the database
    layout: int  # version of the file's layout
    created: datetime

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "created": self.created.isoformat()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A numbered export that never changes.  `sha256` is its manifest's; `counts`: format -> counts."""

    number: int
    sha256: str
    bytes: int
    counts: Mapping[str, Mapping[str, int]]
    filters: Mapping[str, Any]
    note: str
    created: datetime

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "created": self.created.isoformat()}


@dataclass(frozen=True, slots=True)
class ImportReport:
    """`stored` and `known` (equal rows that were there already) count rows by kind."""

    file: str
    format: str
    stored: Mapping[str, int]
    known: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class JudgmentConflictError(ConflictError):
    """The judgment changed since it was shown.  `mine` was to be saved, `theirs` is stored (None: cleared)."""

    def __init__(self, mine: Judgment, theirs: Judgment | None, expected: int) -> None:
        self.mine, self.theirs, self.expected = mine, theirs, expected
        now = (
            f"now '{theirs.verdict}' with note '{theirs.note}' (version {theirs.version}, {time_text(theirs.updated, utc=True)})"
            if theirs
            else "cleared"
        )
        super().__init__(
            f"the judgment of answer {mine.position + 1} was changed in another window: it is {now}; "
            f"yours is '{mine.verdict}' with note '{mine.note}' (made from version {expected}): look at both, then save again"
        )


MAX_REASONS = 100  # refused rows that an error names


class RejectedRowsError(FormatError):
    """Rows of an import that were refused; nothing was stored.  `rejected` holds (line, reason), at most the first 100."""

    def __init__(self, file: object, rejected: tuple[tuple[int, str], ...], total: int, unit: str = "line") -> None:
        """`unit`: what the numbers count; "row" in a table, where a cell may have several lines."""
        self.rejected, self.total, self.unit = rejected, total, unit
        examples = "; ".join(f"{unit} {number}: {reason}" for number, reason in rejected[:5])
        more = f"; and {total - 5} more" if total > 5 else ""
        rows = "row was" if total == 1 else "rows were"
        super().__init__(f"{total} {rows} refused and nothing was stored: {examples}{more}", file=file)
        self.line = rejected[0][0] if rejected else None


def check_judgment(label: object, note: str, state: object) -> None:
    """Raises InputError for an unknown state or label, a submitted judgment without label, and a note that cannot be stored."""
    check_choice(state, State, "the state")
    if label is not None or state == "submitted":
        check_choice(label, Label, "the label")
    check_text(note, "the note", limit=MAX_NOTE_CHARS)
