"""Secrets that users keep, for their documents to name.

Revision: 0027, after 0026.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "user_secrets",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger()),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_by", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_user_secrets"),
        sa.UniqueConstraint("username", "name", name="uq_user_secrets_username_name"),
    )
    op.create_index("ix_user_secrets_sealed_by_id", "user_secrets", ["sealed_by", "id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("user_secrets")
