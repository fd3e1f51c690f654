"""Columns for the virtual cluster that an access token, and what it makes, are limited to.

Revision: 0025, after 0024.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLES = ("access_tokens", "certificates", "user_keys")


def upgrade() -> None:
    """What exists is for all virtual clusters."""
    for table in TABLES:
        op.add_column(table, sa.Column("virtual_cluster", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    """Delete what is limited and drop the columns."""
    for table in TABLES:
        limited = sa.table(table, sa.column("virtual_cluster"))
        op.execute(sa.delete(limited).where(limited.c.virtual_cluster != ""))
        op.drop_column(table, "virtual_cluster")
