"""Groups of users, and grants of virtual clusters to users and groups.

Revision: 0015, after 0014.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; everyone may use every virtual cluster, as before."""
    op.create_table(
        "groups",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("external_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_groups"),
    )
    op.create_table(
        "group_members",
        sa.Column("groupname", sa.String(64), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("groupname", "username", name="pk_group_members"),
        sa.ForeignKeyConstraint(["groupname"], ["groups.name"], name="fk_group_members_groupname"),
    )
    op.create_index("ix_group_members_username", "group_members", ["username"])
    op.create_table(
        "vc_grants",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("manages", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "subject", "virtual_cluster", name="pk_vc_grants"),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in ("vc_grants", "group_members", "groups"):
        op.drop_table(table)
