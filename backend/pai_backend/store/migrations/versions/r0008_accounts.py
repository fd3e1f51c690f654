"""The accounts there are, why an administrator enters a job, and which application token made what.

Revision: 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them. What was made before belongs to its user alone."""
    op.create_table(
        "accounts",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("username", name="pk_accounts"),
    )
    for table in ("certificates", "user_keys", "shares"):
        op.add_column(table, sa.Column("made_by", sa.String(length=64), nullable=False, server_default=sa.text("''")))
    op.add_column("certificates", sa.Column("reason", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    """Drop them; what application tokens made outlives them then."""
    op.drop_column("certificates", "reason")
    for table in ("shares", "user_keys", "certificates"):
        op.drop_column(table, "made_by")
    op.drop_table("accounts")
