"""The first schema.

Types are spelled out, not taken from storage.schema: a migration stays as it was released.  Names of constraints follow from the naming
convention of storage.schema.base.  Five tables are only ever added to; triggers refuse the rest.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1000"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
LARGE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # STRICT tables know no BIGINT; SQLite's INTEGER has 64 bits
APPEND_ONLY = ("guideline", "submission", "interaction", "activity", "comment")


def upgrade() -> None:
    _create(
        "annotator",
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_required(TIME, "created"),
        sa.CheckConstraint("length(name) > 0", name="name"),
    )
    _create(
        "evaluation",
        sa.Column("public_id", sa.Text, nullable=False, unique=True),
        sa.Column("digest", sa.Text, unique=True, index=True),
        sa.Column("label", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("checkpoint", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("checkpoint_digest", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("code_commit", sa.Text, nullable=False, server_default=sa.text("''")),
        *_required(sa.Text, "system", "corpus", "questions", "metrics", "report"),
        *_required(TIME, "created"),
        *_optional(sa.Text, "tags"),
        *_optional(sa.Integer, "seed", "n", "failed"),
        *_optional(LARGE, "parameters"),
        *_optional(REAL, "peak_memory_mb", "seconds_median", "seconds_p95"),
        *_optional(TIME, "finished"),
    )
    op.create_index(op.f("ix_evaluation_created_id"), "evaluation", ["created", "id"])
    _create(
        "export",
        sa.Column("created", TIME, nullable=False, index=True),
        *_required(sa.Text, "format", "file", "sha256", "counts", "filters"),
        *_required(sa.Integer, "bytes"),
        sa.CheckConstraint("bytes >= 0", name="bytes"),
        sa.CheckConstraint(
            "format IN ('ambignq', 'ambignq-full', 'fid', 'training', 'preferences', 'csv', 'parquet', 'datasets', 'jsonl', 'backup')",
            name="format",
        ),
    )
    _create(
        "last_commit",
        sa.Column("process", sa.Text, nullable=False, unique=True),
        *_required(sa.Text, "token"),
        *_required(TIME, "updated"),
    )
    _create(
        "project",
        sa.Column("public_id", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        *_required(sa.Text, "stages", "corpus", "systems", "ordering", "thresholds", "state"),
        *_required(sa.Integer, "annotators_per_item", "seed", "gold_first", "version"),
        *_optional(sa.Text, "reference_date"),
        *_required(REAL, "lease_minutes", "gold_pass", "gold_rate"),
        *_required(sa.Text, "error_labels"),
        *_required(TIME, "created", "updated"),
        sa.CheckConstraint("annotators_per_item >= 1", name="annotators_per_item"),
        sa.CheckConstraint("gold_first >= 0 AND gold_pass >= 0 AND gold_pass <= 1", name="gold"),
        sa.CheckConstraint("gold_rate >= 0 AND gold_rate <= 0.5", name="gold_rate"),
        sa.CheckConstraint("lease_minutes > 0", name="lease_minutes"),
        sa.CheckConstraint("length(name) > 0", name="name"),
        sa.CheckConstraint("ordering IN ('file', 'random', 'uncertainty', 'disagreement')", name="ordering"),
        sa.CheckConstraint("state IN ('open', 'closed')", name="state"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    _create(
        "question",
        sa.Column("public_id", sa.Text, nullable=False, unique=True),
        *_required(sa.Text, "source_id", "text", "folded"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("text", "source_id"),
        sa.CheckConstraint("length(text) > 0", name="text"),
    )
    _create(
        "sign_in_wait",
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("until", TIME, nullable=False, index=True),
        *_required(sa.Integer, "failures"),
        sa.CheckConstraint("failures >= 0", name="failures"),
    )
    _create(
        "snapshot",
        sa.Column("number", sa.Integer, nullable=False, unique=True),
        *_required(sa.Text, "sha256", "counts", "filters", "note"),
        *_required(sa.Integer, "bytes"),
        *_required(TIME, "created"),
        sa.CheckConstraint("bytes >= 0", name="bytes"),
        sa.CheckConstraint("number >= 1", name="number"),
        sa.CheckConstraint("length(sha256) = 64", name="sha256"),
    )
    _create(
        "account",
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False, unique=True),
        sa.Column("subject", sa.Text, unique=True),
        *_required(sa.Text, "role"),
        *_optional(sa.Text, "password"),
        *_required(sa.Integer, "active"),
        *_required(TIME, "created", "updated"),
        sa.CheckConstraint("active IN (0, 1)", name="active"),
        sa.CheckConstraint("role IN ('annotator', 'validator', 'manager')", name="role"),
    )
    _create(
        "sign_in",
        sa.Column("account_id", sa.Integer, sa.ForeignKey("account.id"), nullable=False, index=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("secret", sa.Text, nullable=False, unique=True),
        sa.Column("expires", TIME, nullable=False, index=True),
        *_required(TIME, "created"),
    )
    _create(
        "admission",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Integer, "admitted"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("project_id", "annotator_id"),
        sa.CheckConstraint("admitted IN (0, 1)", name="admitted"),
    )
    _create(
        "annotation",
        sa.Column("question_id", sa.Integer, sa.ForeignKey("question.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False, index=True),
        *_required(sa.Text, "stage", "type", "state"),
        *_required(sa.Integer, "version"),
        *_required(TIME, "created", "updated"),
        sa.UniqueConstraint("question_id", "annotator_id", "stage"),
        sa.CheckConstraint("stage IN ('generation', 'validation')", name="stage"),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name="state"),
        sa.CheckConstraint("type IN ('single', 'multiple', 'none')", name="type"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    _create(
        "evaluation_row",
        sa.Column("evaluation_id", sa.Integer, sa.ForeignKey("evaluation.id", ondelete="CASCADE"), nullable=False),
        *_required(sa.Integer, "position", "ambiguous"),
        *_required(sa.Text, "question_id", "question"),
        *_optional(sa.Text, "source", "ambiguity", "error"),
        *_optional(REAL, "seconds"),
        *_optional(sa.Integer, "answer_count", "reference_count", "missed", "spurious", "alias_mismatch", "duplicate"),
        *_optional(sa.Integer, "stopped_early", "ran_on", "not_retrieved"),
        *_required(sa.LargeBinary, "body"),
        sa.UniqueConstraint("evaluation_id", "question_id"),
        sa.UniqueConstraint("evaluation_id", "position"),
        sa.CheckConstraint("ambiguous IN (0, 1)", name="ambiguous"),
        sa.CheckConstraint("position >= 0", name="position"),
    )
    _create(
        "evaluation_score",
        sa.Column("evaluation_id", sa.Integer, sa.ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("metric", sa.Text, primary_key=True),
        sa.Column("scope", sa.Text, primary_key=True),
        *_required(sa.Integer, "n"),
        *_required(REAL, "mean"),
        *_optional(REAL, "low", "high"),
        sa.CheckConstraint("scope IN ('all', 'multi')", name="scope"),
        sqlite_with_rowid=False,
    )
    _create(
        "evaluation_trace",
        sa.Column("evaluation_id", sa.Integer, sa.ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        *_required(sa.LargeBinary, "trace"),
    )
    _create(
        "evaluation_value",
        sa.Column("evaluation_id", sa.Integer, sa.ForeignKey("evaluation.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("metric", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        *_required(REAL, "value", "weight"),
        sqlite_with_rowid=False,
    )
    _create(
        "guideline",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Integer, "version"),
        *_required(sa.Text, "text", "examples"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("project_id", "version"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    _create(
        "prediction",
        sa.Column("public_id", sa.Text, nullable=False, unique=True),
        sa.Column("key", sa.Text, unique=True),
        sa.Column("question_id", sa.Integer, sa.ForeignKey("question.id"), nullable=False, index=True),
        *_required(sa.Text, "system", "settings", "corpus", "corpus_digest", "checkpoint", "checkpoint_digest", "trace"),
        *_required(REAL, "seconds"),
        *_required(TIME, "created"),
        sa.CheckConstraint("seconds >= 0", name="seconds"),
    )
    op.create_index(op.f("ix_prediction_created_id"), "prediction", ["created", "id"])
    _create(
        "project_item",
        sa.Column("public_id", sa.Text, nullable=False, unique=True),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("question_id", sa.Integer, sa.ForeignKey("question.id"), nullable=False, index=True),
        *_required(sa.Integer, "position"),
        *_optional(sa.Text, "gold", "passages", "corrections"),
        *_required(sa.Text, "references"),
        *_optional(REAL, "margin", "disagreement"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("project_id", "position"),
        sa.UniqueConstraint("project_id", "question_id"),
        sa.CheckConstraint("disagreement >= 0 AND disagreement <= 1", name="disagreement"),
        sa.CheckConstraint("position >= 0", name="position"),
    )
    _create(
        "activity",
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id")),
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id")),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id")),
        *_required(sa.Text, "action", "details"),
        *_required(TIME, "created"),
        sa.CheckConstraint("length(action) > 0", name="action"),
    )
    op.create_index(op.f("ix_activity_annotator_id_id"), "activity", ["annotator_id", "id"])
    op.create_index(op.f("ix_activity_item_id_id"), "activity", ["item_id", "id"])
    op.create_index(op.f("ix_activity_project_id_id"), "activity", ["project_id", "id"])
    _create(
        "assignment",
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False, index=True),
        *_required(sa.Text, "stage"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("item_id", "stage", "annotator_id"),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name="stage"),
    )
    _create(
        "comment",
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Text, "text"),
        *_required(TIME, "created"),
        sa.CheckConstraint("length(text) > 0", name="text"),
    )
    op.create_index(op.f("ix_comment_item_id_id"), "comment", ["item_id", "id"])
    _create(
        "draft",
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Text, "stage", "body"),
        *_required(sa.Integer, "open", "version"),
        *_required(TIME, "created", "updated"),
        sa.UniqueConstraint("item_id", "stage", "annotator_id"),
        sa.CheckConstraint("open IN (0, 1)", name="open"),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name="stage"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    op.create_index(op.f("ix_draft_annotator_id_open_updated"), "draft", ["annotator_id", "open", "updated"])
    _create(
        "interaction",
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Text, "stage", "kind", "query", "passage_id", "title"),
        *_required(TIME, "created"),
        sa.CheckConstraint("kind IN ('search', 'view')", name="kind"),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name="stage"),
    )
    op.create_index(
        op.f("ix_interaction_item_id_stage_annotator_id_id"), "interaction", ["item_id", "stage", "annotator_id", "id"]
    )
    _create(
        "item_prediction",
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("prediction_id", sa.Integer, sa.ForeignKey("prediction.id"), nullable=False, index=True),
        *_required(sa.Integer, "side"),
        sa.UniqueConstraint("item_id", "side"),
        sa.CheckConstraint("side IN (0, 1)", name="side"),
    )
    _create(
        "item_stage",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        *_required(sa.Text, "stage", "state"),
        *_required(sa.Integer, "gold", "slots"),
        sa.UniqueConstraint("item_id", "stage"),
        sa.UniqueConstraint("item_id", "stage", "slots"),
        sa.CheckConstraint("gold IN (0, 1)", name="gold"),
        sa.CheckConstraint("slots >= 0", name="slots"),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name="stage"),
        sa.CheckConstraint("state IN ('waiting', 'open', 'done')", name="state"),
    )
    op.create_index(
        op.f("ix_item_stage_project_id_stage_gold_state_item_id"),
        "item_stage",
        ["project_id", "stage", "gold", "state", "item_id"],
    )
    _create(
        "predicted_answer",
        sa.Column("prediction_id", sa.Integer, sa.ForeignKey("prediction.id"), nullable=False),
        *_required(sa.Integer, "position"),
        *_required(sa.Text, "text", "evidence"),
        *_required(REAL, "probability"),
        *_optional(sa.Text, "clarified"),
        *_optional(sa.Integer, "passed"),
        sa.UniqueConstraint("prediction_id", "position"),
        sa.CheckConstraint("(clarified IS NULL) = (passed IS NULL)", name="clarified"),
        sa.CheckConstraint("passed IN (0, 1)", name="passed"),
        sa.CheckConstraint("position >= 0", name="position"),
        sa.CheckConstraint("probability >= 0 AND probability <= 1", name="probability"),
    )
    _create(
        "qa_pair",
        sa.Column("annotation_id", sa.Integer, sa.ForeignKey("annotation.id", ondelete="CASCADE"), nullable=False),
        *_required(sa.Integer, "position"),
        *_required(sa.Text, "question", "answers", "passage_ids"),
        sa.UniqueConstraint("annotation_id", "position"),
        sa.CheckConstraint("position >= 0", name="position"),
    )
    _create(
        "submission",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False, index=True),
        *_required(sa.Text, "stage", "body"),
        *_required(sa.Integer, "version", "guidelines", "automatic"),
        *_optional(sa.Integer, "restores"),
        *_required(REAL, "seconds"),
        *_optional(REAL, "score"),
        *_required(TIME, "created"),
        sa.UniqueConstraint("item_id", "stage", "annotator_id", "version"),
        sa.CheckConstraint("automatic IN (0, 1)", name="automatic"),
        sa.CheckConstraint("restores IS NULL OR (restores >= 1 AND restores < version)", name="restores"),
        sa.CheckConstraint("score >= 0 AND score <= 1", name="score"),
        sa.CheckConstraint("seconds >= 0", name="seconds"),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name="stage"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    op.create_index(op.f("ix_submission_project_id_stage_id"), "submission", ["project_id", "stage", "id"])
    _create(
        "judgment",
        sa.Column("predicted_answer_id", sa.Integer, sa.ForeignKey("predicted_answer.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False, index=True),
        *_optional(sa.Text, "verdict"),
        *_required(sa.Text, "note", "state"),
        *_required(sa.Integer, "version"),
        *_required(TIME, "created", "updated"),
        sa.UniqueConstraint("predicted_answer_id", "annotator_id"),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name="state"),
        sa.CheckConstraint("state <> 'submitted' OR verdict IS NOT NULL", name="submitted"),
        sa.CheckConstraint("verdict IN ('correct', 'wrong', 'unsupported', 'duplicate', 'outdated', 'contradicts')", name="verdict"),
        sa.CheckConstraint("version >= 1", name="version"),
    )
    _create(
        "judgment_revision",
        sa.Column("predicted_answer_id", sa.Integer, sa.ForeignKey("predicted_answer.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_optional(sa.Text, "verdict"),
        *_required(sa.Text, "note", "state"),
        *_required(sa.Integer, "version", "cleared"),
        *_required(TIME, "saved", "replaced"),
        sa.UniqueConstraint("predicted_answer_id", "annotator_id", "version"),
        sa.CheckConstraint("cleared IN (0, 1)", name="cleared"),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name="state"),
        sa.CheckConstraint("verdict IN ('correct', 'wrong', 'unsupported', 'duplicate', 'outdated', 'contradicts')", name="verdict"),
    )
    _create(
        "task",
        sa.Column("project_id", sa.Integer, sa.ForeignKey("project.id"), nullable=False),
        sa.Column("item_id", sa.Integer, sa.ForeignKey("project_item.id"), nullable=False),
        sa.Column("annotator_id", sa.Integer, sa.ForeignKey("annotator.id"), nullable=False),
        *_required(sa.Text, "stage", "state", "reason"),
        *_required(sa.Integer, "slots", "seed", "version"),
        *_optional(sa.Integer, "slot"),
        *_optional(TIME, "expires"),
        *_required(REAL, "seconds"),
        *_required(TIME, "created", "updated"),
        sa.ForeignKeyConstraint(
            ["item_id", "stage", "slots"], ["item_stage.item_id", "item_stage.stage", "item_stage.slots"], onupdate="CASCADE"
        ),
        sa.UniqueConstraint("item_id", "stage", "annotator_id"),
        sa.UniqueConstraint("item_id", "stage", "slot"),
        sa.CheckConstraint("state <> 'leased' OR expires IS NOT NULL", name="expires"),
        sa.CheckConstraint("state IN ('leased', 'submitted', 'returned') OR slot IS NULL", name="holds"),
        sa.CheckConstraint("seconds >= 0", name="seconds"),
        sa.CheckConstraint("slot >= 0 AND slot < slots", name="slot"),
        sa.CheckConstraint("state IN ('leased', 'released', 'expired', 'submitted', 'skipped', 'returned')", name="state"),
        sa.CheckConstraint("version >= 0", name="version"),
    )
    op.create_index(
        op.f("ix_task_annotator_id_project_id_stage_state"), "task", ["annotator_id", "project_id", "stage", "state"]
    )
    op.create_index(op.f("ix_task_project_id_stage_state_slot"), "task", ["project_id", "stage", "state", "slot"])
    for table in APPEND_ONLY:
        _refuse_changes(table)


def _required(kind: Any, *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind, nullable=False) for name in names)


def _optional(kind: Any, *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind) for name in names)


def _create(name: str, *parts: sa.schema.SchemaItem, sqlite_with_rowid: bool = True) -> None:
    """A table, with an `id` unless its parts have a primary key."""
    has_key = any(isinstance(part, sa.Column) and part.primary_key for part in parts)
    number = () if has_key else (sa.Column("id", sa.Integer, primary_key=True),)
    op.create_table(name, *number, *parts, sqlite_strict=True, sqlite_with_rowid=sqlite_with_rowid)


def _refuse_changes(table: str) -> None:
    words = f"rows of {table} are never changed or deleted"
    if op.get_bind().dialect.name == "sqlite":
        for event in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER refuse_{event.lower()}_{table} BEFORE {event} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{words}'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION refuse_change_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN RAISE EXCEPTION '{words}' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER refuse_change_{table} BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_{table}()"
    )
