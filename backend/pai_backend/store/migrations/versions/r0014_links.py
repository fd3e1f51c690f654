"""Columns for shares that are links to one service.

Revision: 0014, after 0013.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; the shares that exist are with users."""
    op.add_column("shares", sa.Column("link", sa.String(64), nullable=False, server_default=sa.text("''")))
    op.add_column("shares", sa.Column("service", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    """Delete the links and drop the columns."""
    shares = sa.table("shares", sa.column("link"))
    op.execute(sa.delete(shares).where(shares.c.link != ""))
    for column in ("service", "link"):
        op.drop_column("shares", column)
