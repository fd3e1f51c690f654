"""A table for questions why a job waits, and their answers.

Revision: 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it."""
    op.create_table(
        "explanations",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_explanations_job"),
        sa.PrimaryKeyConstraint("job", name="pk_explanations"),
    )
    op.create_index(
        "ix_explanations_open",
        "explanations",
        ["asked_at", "job"],
        sqlite_where=sa.text("open = 1"),
        postgresql_where=sa.text("open"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("explanations")
