"""A table of budgets: hours that users, groups and virtual clusters may use.

Revision: 0028, after 0027.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "budgets",
        sa.Column("id", sa.String(8), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("groupname", sa.Text(), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("resource", sa.String(8), nullable=False),
        sa.Column("per", sa.String(8), nullable=False),
        sa.Column("limit_us", sa.BigInteger(), nullable=False),
        sa.Column("warn_percent", sa.Integer(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("told_window", sa.BigInteger()),
        sa.Column("told_level", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_budgets"),
        sa.UniqueConstraint(
            "username",
            "groupname",
            "virtual_cluster",
            "resource",
            "per",
            name="uq_budgets_username_groupname_virtual_cluster_resource_per",
        ),
    )


def downgrade() -> None:
    """Drop it; nothing limits hours then."""
    op.drop_table("budgets")
