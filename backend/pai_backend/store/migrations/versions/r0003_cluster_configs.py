"""A table for the versions of the cluster configuration.

Revision: 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "cluster_configs",
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("in_force_at", sa.BigInteger(), nullable=True),
        sa.Column("effects", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_cluster_configs"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("cluster_configs")
