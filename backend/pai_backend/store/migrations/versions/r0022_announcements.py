"""What administrators announce to all users.

Revision: 0022, after 0021.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "announcements",
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger()),
        sa.PrimaryKeyConstraint("at", "by", name="pk_announcements"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("announcements")
