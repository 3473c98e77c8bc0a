"""The first schema.

Types are spelled out, not taken from storage.schema.engine: a migration stays as it was released.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "annotator",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("length(name) > 0", name=op.f("ck_annotator_name")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotator")),
        sa.UniqueConstraint("name", name=op.f("uq_annotator_name")),
        sqlite_strict=True,
    )
    op.create_table(
        "evaluation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("questions", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation")),
        sa.UniqueConstraint("public_id", name=op.f("uq_evaluation_public_id")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("evaluation", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_evaluation_created_id"), ["created", "id"], unique=False)

    op.create_table(
        "export",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("filters", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("format IN ('ambignq', 'fid', 'jsonl', 'training', 'backup')", name=op.f("ck_export_format")),
        sa.CheckConstraint("bytes >= 0", name=op.f("ck_export_bytes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_export")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("export", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_export_created"), ["created"], unique=False)

    op.create_table(
        "question",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("length(text) > 0", name=op.f("ck_question_text")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.UniqueConstraint("public_id", name=op.f("uq_question_public_id")),
        sa.UniqueConstraint("text", "source_id", name=op.f("uq_question_text_source_id")),
        sqlite_strict=True,
    )
    op.create_table(
        "annotation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("stage IN ('generation', 'validation')", name=op.f("ck_annotation_stage")),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name=op.f("ck_annotation_state")),
        sa.CheckConstraint("type IN ('single', 'multiple', 'none')", name=op.f("ck_annotation_type")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_annotation_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_annotation_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_annotation_question_id_question")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotation")),
        sa.UniqueConstraint("question_id", "annotator_id", "stage", name=op.f("uq_annotation_question_id_annotator_id_stage")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("annotation", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_annotation_annotator_id"), ["annotator_id"], unique=False)

    op.create_table(
        "annotation_revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("saved", TIME, nullable=False),
        sa.Column("replaced", TIME, nullable=False),
        sa.CheckConstraint("stage IN ('generation', 'validation')", name=op.f("ck_annotation_revision_stage")),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name=op.f("ck_annotation_revision_state")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_annotation_revision_annotator_id_annotator")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_annotation_revision_question_id_question")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_annotation_revision")),
        sa.UniqueConstraint(
            "question_id",
            "annotator_id",
            "stage",
            "version",
            name=op.f("uq_annotation_revision_question_id_annotator_id_stage_version"),
        ),
        sqlite_strict=True,
    )
    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("item", sa.Text(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("expires", TIME, nullable=False),
        sa.CheckConstraint("kind IN ('question', 'prediction')", name=op.f("ck_assignment_kind")),
        sa.CheckConstraint("slot >= 0", name=op.f("ck_assignment_slot")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_assignment_annotator_id_annotator")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("kind", "item", "annotator_id", name=op.f("uq_assignment_kind_item_annotator_id")),
        sa.UniqueConstraint("kind", "item", "slot", name=op.f("uq_assignment_kind_item_slot")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_annotator_id"), ["annotator_id"], unique=False)

    op.create_table(
        "prediction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("question_id", sa.Integer(), nullable=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("corpus_digest", sa.Text(), nullable=False),
        sa.Column("checkpoint", sa.Text(), nullable=False),
        sa.Column("checkpoint_digest", sa.Text(), nullable=False),
        sa.Column("seconds", REAL, nullable=False),
        sa.Column("trace", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("seconds >= 0", name=op.f("ck_prediction_seconds")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_prediction_question_id_question")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prediction")),
        sa.UniqueConstraint("key", name=op.f("uq_prediction_key")),
        sa.UniqueConstraint("public_id", name=op.f("uq_prediction_public_id")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("prediction", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_prediction_created_id"), ["created", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_prediction_question_id"), ["question_id"], unique=False)

    op.create_table(
        "predicted_answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("prediction_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("probability", REAL, nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("clarified", sa.Text(), nullable=True),
        sa.Column("passed", sa.Integer(), nullable=True),
        sa.CheckConstraint("(clarified IS NULL) = (passed IS NULL)", name=op.f("ck_predicted_answer_clarified")),
        sa.CheckConstraint("passed IN (0, 1)", name=op.f("ck_predicted_answer_passed")),
        sa.CheckConstraint("position >= 0", name=op.f("ck_predicted_answer_position")),
        sa.CheckConstraint("probability >= 0 AND probability <= 1", name=op.f("ck_predicted_answer_probability")),
        sa.ForeignKeyConstraint(
            ["prediction_id"], ["prediction.id"], name=op.f("fk_predicted_answer_prediction_id_prediction")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_predicted_answer")),
        sa.UniqueConstraint("prediction_id", "position", name=op.f("uq_predicted_answer_prediction_id_position")),
        sqlite_strict=True,
    )
    op.create_table(
        "qa_pair",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("annotation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("answers", sa.Text(), nullable=False),
        sa.Column("passage_ids", sa.Text(), nullable=False),
        sa.CheckConstraint("position >= 0", name=op.f("ck_qa_pair_position")),
        sa.ForeignKeyConstraint(
            ["annotation_id"], ["annotation.id"], name=op.f("fk_qa_pair_annotation_id_annotation"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qa_pair")),
        sa.UniqueConstraint("annotation_id", "position", name=op.f("uq_qa_pair_annotation_id_position")),
        sqlite_strict=True,
    )
    op.create_table(
        "judgment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("predicted_answer_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.CheckConstraint("state <> 'submitted' OR verdict IS NOT NULL", name=op.f("ck_judgment_submitted")),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name=op.f("ck_judgment_state")),
        sa.CheckConstraint("verdict IN ('correct', 'wrong', 'unsupported', 'duplicate')", name=op.f("ck_judgment_verdict")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_judgment_version")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_judgment_annotator_id_annotator")),
        sa.ForeignKeyConstraint(
            ["predicted_answer_id"], ["predicted_answer.id"], name=op.f("fk_judgment_predicted_answer_id_predicted_answer")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgment")),
        sa.UniqueConstraint("predicted_answer_id", "annotator_id", name=op.f("uq_judgment_predicted_answer_id_annotator_id")),
        sqlite_strict=True,
    )
    with op.batch_alter_table("judgment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_judgment_annotator_id"), ["annotator_id"], unique=False)

    op.create_table(
        "judgment_revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("predicted_answer_id", sa.Integer(), nullable=False),
        sa.Column("annotator_id", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("saved", TIME, nullable=False),
        sa.Column("replaced", TIME, nullable=False),
        sa.Column("cleared", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('draft', 'submitted', 'skipped')", name=op.f("ck_judgment_revision_state")),
        sa.CheckConstraint(
            "verdict IN ('correct', 'wrong', 'unsupported', 'duplicate')", name=op.f("ck_judgment_revision_verdict")
        ),
        sa.CheckConstraint("cleared IN (0, 1)", name=op.f("ck_judgment_revision_cleared")),
        sa.ForeignKeyConstraint(["annotator_id"], ["annotator.id"], name=op.f("fk_judgment_revision_annotator_id_annotator")),
        sa.ForeignKeyConstraint(
            ["predicted_answer_id"],
            ["predicted_answer.id"],
            name=op.f("fk_judgment_revision_predicted_answer_id_predicted_answer"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgment_revision")),
        sa.UniqueConstraint(
            "predicted_answer_id",
            "annotator_id",
            "version",
            name=op.f("uq_judgment_revision_predicted_answer_id_annotator_id_version"),
        ),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("judgment_revision")
    with op.batch_alter_table("judgment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_judgment_annotator_id"))

    op.drop_table("judgment")
    op.drop_table("qa_pair")
    op.drop_table("predicted_answer")
    with op.batch_alter_table("prediction", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_prediction_question_id"))
        batch_op.drop_index(batch_op.f("ix_prediction_created_id"))

    op.drop_table("prediction")
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_assignment_annotator_id"))

    op.drop_table("assignment")
    op.drop_table("annotation_revision")
    with op.batch_alter_table("annotation", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_annotation_annotator_id"))

    op.drop_table("annotation")
    op.drop_table("question")
    with op.batch_alter_table("export", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_export_created"))

    op.drop_table("export")
    with op.batch_alter_table("evaluation", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_evaluation_created_id"))

    op.drop_table("evaluation")
    op.drop_table("annotator")
