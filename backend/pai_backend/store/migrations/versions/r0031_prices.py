"""A table of prices; a budget may be an amount of money, and its limit is named for that.

Revision: 0031, after 0030.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "prices",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("hourly", sa.BigInteger()),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "since", name="pk_prices"),
    )
    op.execute("ALTER TABLE budgets RENAME COLUMN limit_us TO amount")


def downgrade() -> None:
    """Drop it, and the budgets of money; nothing has a price then."""
    op.execute("DELETE FROM budgets WHERE resource = 'money'")
    op.execute("ALTER TABLE budgets RENAME COLUMN amount TO limit_us")
    op.drop_table("prices")
