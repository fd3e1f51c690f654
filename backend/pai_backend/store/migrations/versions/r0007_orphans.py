"""A table for tasks that the engine has and the database does not know.

Revision: 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "orphans",
        sa.Column("task", sa.String(length=128), nullable=False),
        sa.Column("database", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=True),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("ended_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("task", name="pk_orphans"),
    )


def downgrade() -> None:
    """Drop it; the tasks stay, and are found again."""
    op.drop_table("orphans")
