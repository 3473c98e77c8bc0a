"""The first schema is that of the tables: `storage.schema.creation.create_tables` makes and stamps it.  What changes them after the first release is a
migration after this one.
"""

revision = "1002"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: no database without tables has a revision."""
