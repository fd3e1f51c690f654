"""Columns for the name, scopes and last use of access tokens.

Revision: 0016, after 0015.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; the tokens that exist may do all that their users may."""
    op.add_column("access_tokens", sa.Column("name", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("access_tokens", sa.Column("scopes", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("access_tokens", sa.Column("last_used_at", sa.BigInteger()))


def downgrade() -> None:
    """Delete the limited tokens and drop the columns."""
    tokens = sa.table("access_tokens", sa.column("scopes"))
    op.execute(sa.delete(tokens).where(tokens.c.scopes != ""))
    for column in ("last_used_at", "scopes", "name"):
        op.drop_column("access_tokens", column)
