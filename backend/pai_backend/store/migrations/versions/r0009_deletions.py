"""A table for jobs that are being deleted, and events that may outlive their job.

Revision: 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it. The last event of a deleted job says so, and stays a while for those who follow."""
    with op.batch_alter_table("events") as batch:
        batch.drop_constraint("fk_events_job", type_="foreignkey")
    op.create_table(
        "deletions",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("asked_by", sa.Text(), nullable=False),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("cleared_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("job", name="pk_deletions"),
    )
    open_only = sa.text("cleared_at IS NULL")
    op.create_index(
        "ix_deletions_open", "deletions", ["asked_at", "job"], sqlite_where=open_only, postgresql_where=open_only
    )


def downgrade() -> None:
    """Drop it, and the events of jobs that are gone."""
    op.drop_table("deletions")
    op.execute("DELETE FROM events WHERE job NOT IN (SELECT uid FROM jobs)")
    with op.batch_alter_table("events") as batch:
        batch.create_foreign_key("fk_events_job", "jobs", ["job"], ["uid"])
