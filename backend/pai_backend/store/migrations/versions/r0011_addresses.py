"""Tables for workspace names, and for the keys by which a repeated submission is recognised.

Revision: 0011, after 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them, empty."""
    op.create_table(
        "addresses",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("alias", sa.String(63), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("username", "name", name="pk_addresses"),
        sa.UniqueConstraint("alias", name="uq_addresses_alias"),
    )
    op.create_table(
        "submission_keys",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("job", sa.String(32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("username", "key", name="pk_submission_keys"),
    )
    op.create_index("ix_submission_keys_at", "submission_keys", ["at"])


def downgrade() -> None:
    """Drop them; jobs keep the names that they have."""
    op.drop_table("submission_keys")
    op.drop_table("addresses")
