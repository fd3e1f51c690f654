"""Notifications of users about their jobs, and what is on its way to them.

Revision: 0023, after 0022.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "notifications",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("target", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_by", sa.String(16), nullable=False),
        sa.Column("news", sa.Text(), nullable=False),
        sa.Column("waited_s", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("made_by", sa.String(64), nullable=False),
        sa.Column("tried_at", sa.BigInteger()),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("trouble", sa.Text(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
    )
    op.create_index("ix_notifications_username", "notifications", ["username"])
    op.create_index("ix_notifications_made_by", "notifications", ["made_by"])
    op.create_index("ix_notifications_sealed_by_id", "notifications", ["sealed_by", "id"])
    op.create_table(
        "notices",
        sa.Column("notification", sa.String(16), nullable=False),
        sa.Column("job", sa.String(32), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("news", sa.String(16), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("message", sa.String(32), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["notification"], ["notifications.id"], name="fk_notices_notification"),
        sa.PrimaryKeyConstraint("notification", "job", "seq", name="pk_notices"),
    )
    op.create_index("ix_notices_due", "notices", ["due"])
    op.create_table(
        "noticed",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_noticed"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("noticed")
    op.drop_table("notices")
    op.drop_table("notifications")
