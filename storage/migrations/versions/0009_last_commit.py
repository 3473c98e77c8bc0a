"""The latest commit of each process, by which a commit is known whose acknowledgement was lost."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds


def upgrade() -> None:
    op.create_table(
        "last_commit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("updated", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_last_commit")),
        sa.UniqueConstraint("process", name=op.f("uq_last_commit_process")),
        sqlite_strict=True,
    )


def downgrade() -> None:
    op.drop_table("last_commit")
