"""A table of the stays of tasks at their places, which GPU hours are added up from.

Revision: 0018, after 0017.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it, empty: what ran before was not written down. What runs now counts from its next change on."""
    op.create_table(
        "stays",
        sa.Column("task", sa.String(64), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("job", sa.String(17), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("gpu_type", sa.Text(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("opportunistic", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("task", "began_at", name="pk_stays"),
    )
    op.create_index("ix_stays_ended_at", "stays", ["ended_at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("stays")
