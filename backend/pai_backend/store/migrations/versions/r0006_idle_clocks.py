"""Tables for the uses of jobs with an idle timeout, and for their clocks.

Revision: 0006, after 0005.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "job_uses",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_job_uses_job"),
        sa.PrimaryKeyConstraint("job", "source", name="pk_job_uses"),
    )
    op.create_table(
        "idle_clocks",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_idle_clocks_job"),
        sa.PrimaryKeyConstraint("job", name="pk_idle_clocks"),
    )


def downgrade() -> None:
    """Drop them; jobs with an idle timeout are never stopped for it then."""
    op.drop_table("idle_clocks")
    op.drop_table("job_uses")
