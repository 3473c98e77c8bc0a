"""The tables.  Output of systems (`prediction`, `predicted_answer`) and contributions of people never share a row: `judgment` holds
labels of Explore, `annotation` annotations from files, and `submission` (storage.schema.workbench) the work in projects.

SQLite tables are STRICT (no text in an integer column), enumerations are CHECK constraints, and every constraint has a
name, so that later migrations can find it.  No row of these classes leaves the package: see storage.records.results.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Integer, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from core.annotating.labels import Label
from core.types import AnnotationType, Scope
from storage.records.enumerations import Stage, State
from storage.schema.base import Base, JsonText, NumberedTable, PackedJson


class Question(NumberedTable):
    __table_args__ = (
        UniqueConstraint("text", "source_id"),
        CheckConstraint("length(text) > 0", "text"),
    )

    public_id: Mapped[str] = mapped_column(unique=True)
    source_id: Mapped[str]  # the id it came with; empty for a question that a person typed
    text: Mapped[str]
    folded: Mapped[str]  # case-folded, for searching: SQLite's LIKE folds ASCII only
    created: Mapped[datetime]


class Prediction(NumberedTable):
    __table_args__ = (
        Index(None, "created", "id"),
        CheckConstraint("seconds >= 0", "seconds"),
    )

    public_id: Mapped[str] = mapped_column(unique=True)  # 32 hexadecimal digits, used in links
    key: Mapped[str | None] = mapped_column(unique=True)  # names one run, so that a rerun stores it once
    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"), index=True)
    system: Mapped[str]
    settings: Mapped[dict[str, Any]]
    corpus: Mapped[str]
    corpus_digest: Mapped[str]
    checkpoint: Mapped[str]
    checkpoint_digest: Mapped[str]
    seconds: Mapped[float]
    trace: Mapped[dict[str, Any]] = mapped_column(deferred=True)  # core.trace.to_json of all of it; lists don't load it
    created: Mapped[datetime]


class PredictedAnswer(NumberedTable):
    __table_args__ = (
        UniqueConstraint("prediction_id", "position"),
        CheckConstraint("position >= 0", "position"),
        CheckConstraint("probability >= 0 AND probability <= 1", "probability"),
        CheckConstraint("(clarified IS NULL) = (passed IS NULL)", "clarified"),
    )

    prediction_id: Mapped[int] = mapped_column(ForeignKey("prediction.id"))
    position: Mapped[int]  # from 0, in the order of the prediction's answers
    text: Mapped[str]
    probability: Mapped[float]
    evidence: Mapped[list[Any]]
    clarified: Mapped[str | None]  # the disambiguated question
    passed: Mapped[bool | None]  # its round trip


class Annotator(NumberedTable):
    __table_args__ = (CheckConstraint("length(name) > 0", "name"),)

    name: Mapped[str] = mapped_column(unique=True)
    created: Mapped[datetime]


class Judgment(NumberedTable):
    __table_args__ = (
        UniqueConstraint("predicted_answer_id", "annotator_id"),
        CheckConstraint("state <> 'submitted' OR verdict IS NOT NULL", "submitted"),
        CheckConstraint("version >= 1", "version"),
    )

    predicted_answer_id: Mapped[int] = mapped_column(ForeignKey("predicted_answer.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"), index=True)
    verdict: Mapped[Label | None]
    note: Mapped[str]
    state: Mapped[State]
    version: Mapped[int] = mapped_column()
    created: Mapped[datetime]
    updated: Mapped[datetime]

    # every UPDATE says WHERE version = the one that was read; the store counts, because a cleared judgment's count goes on
    __mapper_args__ = {"version_id_col": version, "version_id_generator": False}  # noqa: RUF012


class JudgmentRevision(NumberedTable):
    """An earlier value of a judgment.  It names answer and annotator, not the judgment: it outlives a cleared one."""

    __table_args__ = (UniqueConstraint("predicted_answer_id", "annotator_id", "version"),)

    predicted_answer_id: Mapped[int] = mapped_column(ForeignKey("predicted_answer.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"))
    verdict: Mapped[Label | None]
    note: Mapped[str]
    state: Mapped[State]
    version: Mapped[int]
    saved: Mapped[datetime]
    replaced: Mapped[datetime]
    cleared: Mapped[bool]  # replaced by nothing


class Annotation(NumberedTable):
    __table_args__ = (
        UniqueConstraint("question_id", "annotator_id", "stage"),
        CheckConstraint("version >= 1", "version"),
    )

    question_id: Mapped[int] = mapped_column(ForeignKey("question.id"))
    annotator_id: Mapped[int] = mapped_column(ForeignKey("annotator.id"), index=True)
    stage: Mapped[Stage]
    type: Mapped[AnnotationType]
    state: Mapped[State]
    version: Mapped[int] = mapped_column()
    created: Mapped[datetime]
    updated: Mapped[datetime]

    __mapper_args__ = {"version_id_col": version, "version_id_generator": False}  # noqa: RUF012


class QaPair(NumberedTable):
    __table_args__ = (
        UniqueConstraint("annotation_id", "position"),
        CheckConstraint("position >= 0", "position"),
    )

    annotation_id: Mapped[int] = mapped_column(ForeignKey("annotation.id", ondelete="CASCADE"))
    position: Mapped[int]
    question: Mapped[str]
    answers: Mapped[list[Any]]  # aliases of one answer
    passage_ids: Mapped[list[Any]]


class Evaluation(NumberedTable):
    __table_args__ = (Index(None, "created", "id"),)

    public_id: Mapped[str] = mapped_column(unique=True)
    system: Mapped[str]
    corpus: Mapped[str]
    questions: Mapped[str]  # name or digest of the question file
    metrics: Mapped[dict[str, Any]]
    report: Mapped[dict[str, Any]] = mapped_column(deferred=True)  # intervals, provenance ...; its rows are EvaluationRow's
    created: Mapped[datetime]
    # what runs are filtered and drawn by
    digest: Mapped[str | None] = mapped_column(unique=True, index=True)  # of the report, so that one run is stored once
    label: Mapped[str] = mapped_column(server_default=text("''"))  # a person's name for the run
    tags: Mapped[dict[str, Any] | None] = mapped_column(JsonText())
    checkpoint: Mapped[str] = mapped_column(server_default=text("''"))
    checkpoint_digest: Mapped[str] = mapped_column(server_default=text("''"))
    code_commit: Mapped[str] = mapped_column(server_default=text("''"))
    seed: Mapped[int | None]
    n: Mapped[int | None]
    failed: Mapped[int | None]
    parameters: Mapped[int | None] = mapped_column(BigInteger().with_variant(Integer(), "sqlite"))
    peak_memory_mb: Mapped[float | None]  # of 10^6 bytes
    seconds_median: Mapped[float | None]
    seconds_p95: Mapped[float | None]
    finished: Mapped[datetime | None]


class EvaluationRow(NumberedTable):
    """One question of an evaluation.  The seven counts are core.metrics.errors' buckets; None if the run has none."""

    __table_args__ = (
        UniqueConstraint("evaluation_id", "position"),
        UniqueConstraint("evaluation_id", "question_id"),
        CheckConstraint("position >= 0", "position"),
    )

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"))
    position: Mapped[int]  # from 0, in the order of the question file
    question_id: Mapped[str]
    question: Mapped[str]
    source: Mapped[str | None]
    ambiguity: Mapped[str | None]
    ambiguous: Mapped[bool]  # AmbigQA's multi
    error: Mapped[str | None]  # why the question failed; None if it did not
    seconds: Mapped[float | None]
    answer_count: Mapped[int | None]
    reference_count: Mapped[int | None]
    missed: Mapped[int | None]
    spurious: Mapped[int | None]
    alias_mismatch: Mapped[int | None]
    duplicate: Mapped[int | None]
    stopped_early: Mapped[int | None]
    ran_on: Mapped[int | None]
    not_retrieved: Mapped[int | None]
    body: Mapped[dict[str, Any]] = mapped_column(PackedJson(), deferred=True)  # the report's row


class EvaluationValue(Base):
    """One metric of one question; an undefined one has no row.  Clustered by run and metric, as it is read."""

    __table_args__ = ({"sqlite_with_rowid": False},)

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    value: Mapped[float]
    weight: Mapped[float]  # how much the question counts in the mean


class EvaluationScore(Base):
    """The mean of a metric over a run with its 95% interval, as the report has it; `n` counts the questions that have a value."""

    __table_args__ = ({"sqlite_with_rowid": False},)

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    scope: Mapped[Scope] = mapped_column(primary_key=True)
    n: Mapped[int]
    mean: Mapped[float]
    low: Mapped[float | None]
    high: Mapped[float | None]


class EvaluationTrace(Base):
    """core.trace.to_json of a question's prediction, where the run has traces."""

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    trace: Mapped[dict[str, Any]] = mapped_column(PackedJson())


class Export(NumberedTable):
    """An export or a backup."""

    __table_args__ = (CheckConstraint("bytes >= 0", "bytes"),)

    format: Mapped[str]  # of storage.exchange.exports.formats, also of a plugin; or "backup"
    file: Mapped[str]
    sha256: Mapped[str]
    bytes: Mapped[int]
    counts: Mapped[dict[str, Any]]
    filters: Mapped[dict[str, Any]]
    created: Mapped[datetime] = mapped_column(index=True)


class Snapshot(NumberedTable):
    """The digests and counts of a snapshot's files; the files themselves are outside the database."""

    __table_args__ = (
        CheckConstraint("number >= 1", "number"),
        CheckConstraint("bytes >= 0", "bytes"),
        CheckConstraint("length(sha256) = 64", "sha256"),
    )

    number: Mapped[int] = mapped_column(unique=True)
    sha256: Mapped[str]  # of the manifest, which holds those of the files
    bytes: Mapped[int]
    counts: Mapped[dict[str, Any]]  # format -> counts
    filters: Mapped[dict[str, Any]]
    note: Mapped[str]
    created: Mapped[datetime]
