"""A table for documents that users keep without submitting them.

Revision: 0013, after 0012.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make it, empty."""
    op.create_table(
        "kept_documents",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_by", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_kept_documents"),
        sa.UniqueConstraint("username", "kind", "name", name="uq_kept_documents_username_kind_name"),
    )
    op.create_index("ix_kept_documents_sealed_by_id", "kept_documents", ["sealed_by", "id"])


def downgrade() -> None:
    """Drop it, and the templates and drafts of users with it."""
    op.drop_table("kept_documents")
