"""Tables for certificates, shares, lockouts and the audit of keys; more columns for registered keys and job keys.

Revision: 0005, after 0004. Job keys get their fingerprints; those of jobs that have ended are deleted.
"""

from __future__ import annotations

import base64
import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_JOB_KEY = "-key"
_task_keys = sa.table("task_keys", sa.column("owner"), sa.column("public"), sa.column("fingerprint"))
_jobs = sa.table("jobs", sa.column("uid"), sa.column("state"))


def upgrade() -> None:
    """Make them."""
    _widen()
    _authorities()
    op.create_table(
        "shares",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_shares_job"),
        sa.PrimaryKeyConstraint("job", "username", name="pk_shares"),
    )
    op.create_index("ix_shares_username", "shares", ["username"], unique=False)
    op.create_table(
        "ssh_lockouts",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("locked_at", sa.BigInteger(), nullable=False),
        sa.Column("locked_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("username", name="pk_ssh_lockouts"),
    )
    position = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "key_events",
        sa.Column("position", position, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("by_user", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_key_events"),
    )
    op.create_index("ix_key_events_username", "key_events", ["username", "position"], unique=False)
    _job_keys()


def _widen() -> None:
    """More columns for what is there."""
    op.add_column("task_keys", sa.Column("fingerprint", sa.String(length=128), nullable=True))
    op.create_index("ix_task_keys_fingerprint", "task_keys", ["fingerprint"], unique=False)
    for column in (
        sa.Column("name", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.Column("replaces", sa.String(length=128), nullable=False, server_default=sa.text("''")),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_from", sa.Text(), nullable=False, server_default=sa.text("''")),
    ):
        op.add_column("user_keys", column)


def _authorities() -> None:
    """Who certifies, and what was certified."""
    op.create_table(
        "user_cas",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_user_cas"),
    )
    op.create_table(
        "certificates",
        sa.Column("serial", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("ca", sa.String(length=128), nullable=False),
        sa.Column("principals", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("job", sa.String(length=32), nullable=True),
        sa.Column("issued_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_from", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("serial", name="pk_certificates"),
    )
    op.create_index("ix_certificates_expires_at", "certificates", ["expires_at"], unique=False)
    op.create_index("ix_certificates_username", "certificates", ["username", "expires_at"], unique=False)
    op.create_index("ix_certificates_ca", "certificates", ["ca", "expires_at"], unique=False)


def _job_keys() -> None:
    """The job keys that are there: those of ended jobs go, the others are found by their fingerprints from now on."""
    conn = op.get_bind()
    ended = set(conn.scalars(sa.select(_jobs.c.uid).where(_jobs.c.state.in_(("STOPPED", "SUCCEEDED", "FAILED")))))
    kept = conn.execute(sa.select(_task_keys.c.owner, _task_keys.c.public)).all()
    for owner, public in ((owner, public) for owner, public in kept if owner.endswith(_JOB_KEY)):
        if owner.removesuffix(_JOB_KEY) in ended:
            conn.execute(sa.delete(_task_keys).where(_task_keys.c.owner == owner))
            continue
        digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
        fingerprint = "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
        conn.execute(sa.update(_task_keys).where(_task_keys.c.owner == owner).values(fingerprint=fingerprint))


def downgrade() -> None:
    """Drop them; a key that is for one job, or for a time, goes too: it would be for ever and for all."""
    user_keys = sa.table("user_keys", sa.column("expires_at"), sa.column("job"))
    op.execute(sa.delete(user_keys).where(sa.or_(user_keys.c.expires_at.is_not(None), user_keys.c.job.is_not(None))))
    for table in ("key_events", "ssh_lockouts", "shares", "certificates", "user_cas"):
        op.drop_table(table)
    for column in ("last_used_from", "last_used_at", "replaces", "job", "expires_at", "name"):
        op.drop_column("user_keys", column)
    op.drop_index("ix_task_keys_fingerprint", "task_keys")
    op.drop_column("task_keys", "fingerprint")
