"""The log of exports knows the format `datasets`."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BEFORE = ("ambignq", "ambignq-full", "fid", "training", "preferences", "csv", "parquet", "jsonl", "backup")
AFTER = ("ambignq", "ambignq-full", "fid", "training", "preferences", "csv", "parquet", "datasets", "jsonl", "backup")


def _formats(values: tuple[str, ...]) -> None:
    with op.batch_alter_table("export", table_kwargs={"sqlite_strict": True}) as batch:
        batch.drop_constraint(op.f("ck_export_format"), type_="check")
        batch.create_check_constraint(op.f("ck_export_format"), f"format IN ({', '.join(repr(v) for v in values)})")


def upgrade() -> None:
    _formats(AFTER)


def downgrade() -> None:
    # the log of folders that the earlier version does not know goes with it
    op.execute("DELETE FROM export WHERE format = 'datasets'")
    _formats(BEFORE)
