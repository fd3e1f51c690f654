"""A table for users whom administrators add while the backend runs.

Revision: 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it, empty."""
    op.create_table(
        "users",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("username", name="pk_users"),
    )


def downgrade() -> None:
    """Drop it; the users must be in the configuration then."""
    op.drop_table("users")
