"""Work on a whole project that takes several transactions; counting what was submitted from an index."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")  # ISO 8601, UTC, microseconds


def upgrade() -> None:
    op.create_table(
        "project_job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("created", TIME, nullable=False),
        sa.Column("touched", TIME, nullable=False),
        sa.CheckConstraint("kind IN ('items', 'order')", name=op.f("ck_project_job_kind")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_project_job_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project_job")),
        sa.UniqueConstraint("project_id", "kind", name=op.f("uq_project_job_project_id_kind")),
        sqlite_strict=True,
    )
    op.drop_index(op.f("ix_task_project_id_stage_state"), table_name="task")
    op.create_index(op.f("ix_task_project_id_stage_state_slot"), "task", ["project_id", "stage", "state", "slot"])


def downgrade() -> None:
    # items that were not there yet for this version would be for the earlier one
    hidden = (
        "SELECT i.id FROM project_item i JOIN project_job j ON j.project_id = i.project_id "
        "WHERE j.kind = 'items' AND i.id >= j.place"
    )
    for table in ("item_prediction", "item_stage"):
        op.execute(f"DELETE FROM {table} WHERE item_id IN ({hidden})")
    op.execute(f"DELETE FROM project_item WHERE id IN ({hidden})")
    op.drop_table("project_job")
    op.drop_index(op.f("ix_task_project_id_stage_state_slot"), table_name="task")
    op.create_index(op.f("ix_task_project_id_stage_state"), "task", ["project_id", "stage", "state"])
