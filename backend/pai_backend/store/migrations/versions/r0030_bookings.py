"""A table for reservations of GPUs.

Revision: 0030, after 0029.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "bookings",
        sa.Column("id", sa.String(length=8), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("begins", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bookings"),
    )


def downgrade() -> None:
    """Drop it; nothing is reserved then."""
    op.drop_table("bookings")
