"""The annotation workbench: people, projects, queues, drafts, submissions, the log.

Four tables are only ever added to; triggers refuse the rest.  A later migration that copies such a table (batch mode on SQLite)
loses its triggers and has to make them again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
APPEND_ONLY = ("guideline", "submission", "interaction", "activity")
TABLES = (
    "project",
    "sign_in_wait",
    "account",
    "admission",
    "guideline",
    "project_item",
    "activity",
    "draft",
    "interaction",
    "item_prediction",
    "item_stage",
    "submission",
    "task",
)


def upgrade() -> None:
    op.create_table(
        "project",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("stages", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("systems", sa.Text(), nullable=False),
        sa.Column("annotators_per_item", sa.Integer(), nullable=False),
        sa.Column("ordering", sa.Text(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("reference_date", sa.Text(), nullable=True),
        sa.Column("thresholds", sa.Text(), nullable=False),
        sa.Column("lease_minutes", REAL, nullable=False),
        sa.Column("gold_first", sa.Integer(), nullable=False),
        sa.Column("gold_pass", REAL, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("ordering IN ('file', 'random', 'uncertainty', 'disagreement')", name=op.f("ck_project_ordering")),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_project_state")),
        sa.CheckConstraint("annotators_per_item >= 1", name=op.f("ck_project_annotators_per_item")),
        sa.CheckConstraint("gold_first >= 0 AND gold_pass >= 0 AND gold_pass <= 1", name=op.f("ck_project_gold")),
        sa.CheckConstraint("lease_minutes > 0", name=op.f("ck_project_lease_minutes")),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_project_name")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_project_version")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
        sa.UniqueConstraint("public_id", name=op.f("uq_project_public_id")),
        sqlite_strict=True,
    )
    op.create_table(
        "sign_in_wait",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_sign_in_wait_failures")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_wait")),
        sa.UniqueConstraint("key", name=op.f("uq_sign_in_wait_key")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_sign_in_wait_until"), "sign_in_wait", ["until"], unique=False)
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("active", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("role IN ('annotator', 'validator', 'manager')", name=op.f("ck_account_role")),
        sa.CheckConstraint("active IN (0, 1)", name=op.f("ck_account_active")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_account_annotator_id_annotator")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("annotator_id", name=op.f("uq_account_annotator_id")),
        sa.UniqueConstraint("subject", name=op.f("uq_account_subject")),
        sqlite_strict=True,
    )
    op.create_table(
        "admission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("admitted", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("admitted IN (0, 1)", name=op.f("ck_admission_admitted")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_admission_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_admission_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_admission")),
        sa.UniqueConstraint("project_id", "annotator_id", name=op.f("uq_admission_project_id_annotator_id")),
        sqlite_strict=True,
    )
    op.create_table(
        "guideline",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("examples", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("version >= 1", name=op.f("ck_guideline_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_guideline_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_guideline_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guideline")),
        sa.UniqueConstraint("project_id", "version", name=op.f("uq_guideline_project_id_version")),
        sqlite_strict=True,
    )
    op.create_table(
        "project_item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("gold", sa.Text(), nullable=True),
        sa.Column("references", sa.Text(), nullable=False),
        sa.Column("passages", sa.Text(), nullable=True),
        sa.Column("margin", REAL, nullable=True),
        sa.Column("disagreement", REAL, nullable=True),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("disagreement >= 0 AND disagreement <= 1", name=op.f("ck_project_item_disagreement")),
        sa.CheckConstraint("position >= 0", name=op.f("ck_project_item_position")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_project_item_project_id_project")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_project_item_question_id_question")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_item")),
        sa.UniqueConstraint("project_id", "position", name=op.f("uq_project_item_project_id_position")),
        sa.UniqueConstraint("project_id", "question_id", name=op.f("uq_project_item_project_id_question_id")),
        sa.UniqueConstraint("public_id", name=op.f("uq_project_item_public_id")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_project_item_question_id"), "project_item", ["question_id"], unique=False)
    op.create_table(
        "activity",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=True),
        sa.Column("item_id", sa.Integer(), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("length(action) > 0", name=op.f("ck_activity_action")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_activity_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_activity_item_id_project_item")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_activity_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_activity")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_activity_annotator_id_id"), "activity", ["annotator_id", "id"], unique=False)
    op.create_index(op.f("ix_activity_item_id_id"), "activity", ["item_id", "id"], unique=False)
    op.create_index(op.f("ix_activity_project_id_id"), "activity", ["project_id", "id"], unique=False)
    op.create_table(
        "draft",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("open", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name=op.f("ck_draft_stage")),
        sa.CheckConstraint("open IN (0, 1)", name=op.f("ck_draft_open")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_draft_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_draft_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_draft_item_id_project_item")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_draft")),
        sa.UniqueConstraint("item_id", "stage", "annotator_id", name=op.f("uq_draft_item_id_stage_annotator_id")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_draft_annotator_id_open_updated"), "draft", ["annotator_id", "open", "updated"], unique=False)
    op.create_table(
        "interaction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("passage_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("kind IN ('search', 'view')", name=op.f("ck_interaction_kind")),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name=op.f("ck_interaction_stage")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_interaction_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_interaction_item_id_project_item")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_interaction")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_interaction_item_id_stage_annotator_id_id"),
        "interaction",
        ["item_id", "stage", "annotator_id", "id"],
        unique=False,
    )
    op.create_table(
        "item_prediction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("side", sa.Integer(), nullable=False),
        sa.Column("prediction_id", sa.Integer(), nullable=False),
        sa.CheckConstraint("side IN (0, 1)", name=op.f("ck_item_prediction_side")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_item_prediction_item_id_project_item")),
        sa.ForeignKeyConstraint(["prediction_id"], ["prediction.id"], name=op.f("fk_item_prediction_prediction_id_prediction")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_prediction")),
        sa.UniqueConstraint("item_id", "side", name=op.f("uq_item_prediction_item_id_side")),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_item_prediction_prediction_id"), "item_prediction", ["prediction_id"], unique=False)
    op.create_table(
        "item_stage",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("gold", sa.Integer(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rank", REAL, nullable=False),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name=op.f("ck_item_stage_stage")),
        sa.CheckConstraint("state IN ('waiting', 'open', 'done')", name=op.f("ck_item_stage_state")),
        sa.CheckConstraint("gold IN (0, 1)", name=op.f("ck_item_stage_gold")),
        sa.CheckConstraint("slots >= 0", name=op.f("ck_item_stage_slots")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_item_stage_item_id_project_item")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_item_stage_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_stage")),
        sa.UniqueConstraint("item_id", "stage", "slots", name=op.f("uq_item_stage_item_id_stage_slots")),
        sa.UniqueConstraint("item_id", "stage", name=op.f("uq_item_stage_item_id_stage")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_item_stage_project_id_stage_gold_state_rank_item_id"),
        "item_stage",
        ["project_id", "stage", "gold", "state", "rank", "item_id"],
        unique=False,
    )
    op.create_table(
        "submission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("restores", sa.Integer(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("seconds", REAL, nullable=False),
        sa.Column("guidelines", sa.Integer(), nullable=False),
        sa.Column("score", REAL, nullable=True),
        sa.Column("automatic", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("stage IN ('generation', 'validation', 'judging')", name=op.f("ck_submission_stage")),
        sa.CheckConstraint("automatic IN (0, 1)", name=op.f("ck_submission_automatic")),
        sa.CheckConstraint("restores IS NULL OR (restores >= 1 AND restores < version)", name=op.f("ck_submission_restores")),
        sa.CheckConstraint("score >= 0 AND score <= 1", name=op.f("ck_submission_score")),
        sa.CheckConstraint("seconds >= 0", name=op.f("ck_submission_seconds")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_submission_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_submission_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_submission_item_id_project_item")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_submission_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submission")),
        sa.UniqueConstraint(
            "item_id", "stage", "annotator_id", "version", name=op.f("uq_submission_item_id_stage_annotator_id_version")
        ),
        sqlite_strict=True,
    )
    op.create_index(op.f("ix_submission_annotator_id"), "submission", ["annotator_id"], unique=False)
    op.create_index(op.f("ix_submission_project_id_stage_id"), "submission", ["project_id", "stage", "id"], unique=False)
    op.create_table(
        "task",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("expires", TIME, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seconds", REAL, nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("state <> 'leased' OR expires IS NOT NULL", name=op.f("ck_task_expires")),
        sa.CheckConstraint(
            "state IN ('leased', 'released', 'expired', 'submitted', 'skipped', 'returned')", name=op.f("ck_task_state")
        ),
        sa.CheckConstraint("state IN ('leased', 'submitted', 'returned') OR slot IS NULL", name=op.f("ck_task_holds")),
        sa.CheckConstraint("seconds >= 0", name=op.f("ck_task_seconds")),
        sa.CheckConstraint("slot >= 0 AND slot < slots", name=op.f("ck_task_slot")),
        sa.CheckConstraint("version >= 0", name=op.f("ck_task_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_task_annotator_id_annotator")),
        sa.ForeignKeyConstraint(
            ["item_id", "stage", "slots"],
            ["item_stage.item_id", "item_stage.stage", "item_stage.slots"],
            name=op.f("fk_task_item_id_item_stage"),
            onupdate="CASCADE",
        ),
        sa.ForeignKeyConstraint(["item_id"], ["project_item.id"], name=op.f("fk_task_item_id_project_item")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_task_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task")),
        sa.UniqueConstraint("item_id", "stage", "annotator_id", name=op.f("uq_task_item_id_stage_annotator_id")),
        sa.UniqueConstraint("item_id", "stage", "slot", name=op.f("uq_task_item_id_stage_slot")),
        sqlite_strict=True,
    )
    op.create_index(
        op.f("ix_task_annotator_id_project_id_stage_state"),
        "task",
        ["annotator_id", "project_id", "stage", "state"],
        unique=False,
    )
    op.create_index(op.f("ix_task_project_id_stage_state"), "task", ["project_id", "stage", "state"], unique=False)
    for table in APPEND_ONLY:
        _refuse_changes(table)


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


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)  # with its indexes and triggers
    if op.get_bind().dialect.name == "postgresql":
        for table in APPEND_ONLY:
            op.execute(f"DROP FUNCTION refuse_change_{table}()")
