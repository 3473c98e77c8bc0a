"""Snapshots, and the formats that came with them in the log of exports."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds
BEFORE = ("ambignq", "fid", "jsonl", "training", "backup")
AFTER = ("ambignq", "ambignq-full", "fid", "training", "preferences", "csv", "parquet", "jsonl", "backup")


def _formats(values: tuple[str, ...]) -> None:
    with op.batch_alter_table("export", table_kwargs={"sqlite_strict": True}) as batch:
        batch.drop_constraint(op.f("ck_export_format"), type_="check")
        batch.create_check_constraint(op.f("ck_export_format"), f"format IN ({', '.join(repr(v) for v in values)})")


def upgrade() -> None:
    op.create_table(
        "snapshot",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("filters", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_snapshot_number")),
        sa.CheckConstraint("bytes >= 0", name=op.f("ck_snapshot_bytes")),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_snapshot_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshot")),
        sa.UniqueConstraint("number", name=op.f("uq_snapshot_number")),
        sqlite_strict=True,
    )
    _formats(AFTER)


def downgrade() -> None:
    # the log of files that the earlier version does not know goes with it
    op.execute(f"DELETE FROM export WHERE format NOT IN ({', '.join(repr(v) for v in BEFORE)})")
    _formats(BEFORE)
    op.drop_table("snapshot")
