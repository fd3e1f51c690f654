"""A column for how the reason of a waiting job was made, so that clients can word it.

Revision: 0032, after 0031. Reasons that are stored already stay as they are, in English.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add it, empty."""
    op.add_column("jobs", sa.Column("why_wording", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("jobs", "why_wording")
