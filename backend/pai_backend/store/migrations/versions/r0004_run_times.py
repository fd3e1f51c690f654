"""A table for how long attempts ran, by user and kind of job.

Revision: 0004, after 0003. Of jobs that ended before it nothing is known: what they were is sealed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "run_times",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("seconds", sa.Text(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("username", "kind", name="pk_run_times"),
    )
    op.create_index("ix_run_times_last_at", "run_times", ["last_at", "username", "kind"], unique=False)


def downgrade() -> None:
    """Drop it."""
    op.drop_table("run_times")
