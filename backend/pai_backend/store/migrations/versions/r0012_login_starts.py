"""A table for jobs that a login asks to run again.

Revision: 0012, after 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it, empty."""
    op.create_table(
        "login_starts",
        sa.Column("job", sa.String(32), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("refusal", sa.Text()),
        sa.PrimaryKeyConstraint("job", name="pk_login_starts"),
    )


def downgrade() -> None:
    """Drop it; a login that waits is told that the job has ended."""
    op.drop_table("login_starts")
