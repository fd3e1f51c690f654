"""A column that says that a user must change their password.

Revision: 0021, after 0020.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Passwords that there are may be kept."""
    column: sa.Column[bool] = sa.Column(
        "must_change_password", sa.Boolean(), nullable=False, server_default=sa.text("false")
    )
    op.add_column("users", column)


def downgrade() -> None:
    """Drop it."""
    op.drop_column("users", "must_change_password")
