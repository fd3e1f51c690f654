"""A column that says from when on no job starts while something is announced.

Revision: 0024, after 0023.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What is announced holds up no job."""
    column: sa.Column[int] = sa.Column("no_starts_from", sa.BigInteger())
    op.add_column("announcements", column)


def downgrade() -> None:
    """Drop it."""
    op.drop_column("announcements", "no_starts_from")
