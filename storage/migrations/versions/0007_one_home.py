"""Submitted work stands in `submission` alone: its echo leaves `annotation`, `judgment` and their revisions.

What is no echo stays (storage.schema.echoes).  The way down brings no echo back: what was submitted is still there, but exports of
an earlier version do not find it.
"""

from alembic import op

from storage.schema.echoes import take_out

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    take_out(op.get_bind())


def downgrade() -> None:
    pass
