"""The leases of the first schema go: the workbench has its own (`task`, since 0003), and nothing reads these any more."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds


def upgrade() -> None:
    op.drop_index(op.f("ix_assignment_annotator_id"), table_name="assignment")
    op.drop_table("assignment")


def downgrade() -> None:
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
    op.create_index(op.f("ix_assignment_annotator_id"), "assignment", ["annotator_id"])
