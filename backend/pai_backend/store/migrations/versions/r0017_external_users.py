"""A table of the users whom providers sign in.

Revision: 0017, after 0016.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it, empty."""
    op.create_table(
        "external_users",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("username", "issuer", name="pk_external_users"),
    )


def downgrade() -> None:
    """Drop it: then the name alone says which user comes from the provider."""
    op.drop_table("external_users")
