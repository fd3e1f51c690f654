"""A table of what pods of others hold of nodes.

Revision: 0019, after 0018.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it; the controller fills it."""
    op.create_table(
        "other_holders",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_other_holders"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("other_holders")
