"""Evaluations: what runs are filtered by, a row a question, a value a metric, means with intervals, traces.

An evaluation of schema 0001 keeps its rows inside its report.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds
REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
LARGE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # STRICT tables know no BIGINT; SQLite's INTEGER has 64 bits

COLUMNS = (
    ("digest", sa.Text(), True, None),
    ("label", sa.Text(), False, sa.text("''")),
    ("tags", sa.Text(), True, None),
    ("checkpoint", sa.Text(), False, sa.text("''")),
    ("checkpoint_digest", sa.Text(), False, sa.text("''")),
    ("code_commit", sa.Text(), False, sa.text("''")),
    ("seed", sa.Integer(), True, None),
    ("n", sa.Integer(), True, None),
    ("failed", sa.Integer(), True, None),
    ("parameters", LARGE, True, None),
    ("peak_memory_mb", REAL, True, None),
    ("seconds_median", REAL, True, None),
    ("seconds_p95", REAL, True, None),
    ("finished", TIME, True, None),
)
BUCKETS = ("missed", "spurious", "alias_mismatch", "duplicate", "stopped_early", "ran_on", "not_retrieved")


def upgrade() -> None:
    for name, kind, nullable, default in COLUMNS:
        op.add_column("evaluation", sa.Column(name, kind, nullable=nullable, server_default=default))
    op.create_index(op.f("ix_evaluation_digest"), "evaluation", ["digest"], unique=True)
    op.create_table(
        "evaluation_row",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("ambiguity", sa.Text(), nullable=True),
        sa.Column("ambiguous", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("seconds", REAL, nullable=True),
        sa.Column("answer_count", sa.Integer(), nullable=True),
        sa.Column("reference_count", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in BUCKETS),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("position >= 0", name=op.f("ck_evaluation_row_position")),
        sa.CheckConstraint("ambiguous IN (0, 1)", name=op.f("ck_evaluation_row_ambiguous")),
        _of_evaluation("evaluation_row"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluation_row")),
        sa.UniqueConstraint("evaluation_id", "position", name=op.f("uq_evaluation_row_evaluation_id_position")),
        sa.UniqueConstraint("evaluation_id", "question_id", name=op.f("uq_evaluation_row_evaluation_id_question_id")),
        sqlite_strict=True,
    )
    op.create_table(
        "evaluation_value",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", REAL, nullable=False),
        sa.Column("weight", REAL, nullable=False),
        _of_evaluation("evaluation_value"),
        sa.PrimaryKeyConstraint("evaluation_id", "metric", "position", name=op.f("pk_evaluation_value")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "evaluation_score",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("mean", REAL, nullable=False),
        sa.Column("low", REAL, nullable=True),
        sa.Column("high", REAL, nullable=True),
        sa.CheckConstraint("scope IN ('all', 'multi')", name=op.f("ck_evaluation_score_scope")),
        _of_evaluation("evaluation_score"),
        sa.PrimaryKeyConstraint("evaluation_id", "metric", "scope", name=op.f("pk_evaluation_score")),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "evaluation_trace",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trace", sa.LargeBinary(), nullable=False),
        _of_evaluation("evaluation_trace"),
        sa.PrimaryKeyConstraint("evaluation_id", "position", name=op.f("pk_evaluation_trace")),
        sqlite_strict=True,
    )


def _of_evaluation(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_evaluation_id_evaluation")
    return sa.ForeignKeyConstraint(["evaluation_id"], ["evaluation.id"], name=name, ondelete="CASCADE")


def downgrade() -> None:
    for table in ("evaluation_trace", "evaluation_score", "evaluation_value", "evaluation_row"):
        op.drop_table(table)
    op.drop_index(op.f("ix_evaluation_digest"), table_name="evaluation")
    for name, *_ in COLUMNS:
        op.drop_column("evaluation", name)
