"""Tables for the rules of virtual clusters, and for what these have led to.

Revision: 0029, after 0028.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "vc_rules",
        sa.Column("vc", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("longest_run_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("vc", name="pk_vc_rules"),
    )
    op.create_table(
        "rule_clocks",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_rule_clocks_job"),
        sa.PrimaryKeyConstraint("job", "kind", name="pk_rule_clocks"),
    )


def downgrade() -> None:
    """Drop them; only the limits of the settings hold then."""
    op.drop_table("rule_clocks")
    op.drop_table("vc_rules")
