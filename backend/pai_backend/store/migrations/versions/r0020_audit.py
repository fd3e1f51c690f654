"""The audit of keys becomes the audit of everything: more columns, and a chain over all events.

Revision: 0020, after 0019.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_BATCH = 1000
_OLD = ("at", "type", "username", "by_user", "source", "subject", "job", "detail")
_NEW = ("token", "request")


def upgrade() -> None:
    """Chain the events that there are, in their order."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "audit_events",
        sa.Column("position", big, autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("type", "username", "by_user", "source", "subject")),
        sa.Column("job", sa.String(32)),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("detail", "token", "request", "result")),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_audit_events"),
    )
    op.create_index("ix_audit_events_at", "audit_events", ["at"])
    for column in ("username", "by_user", "job"):
        op.create_index(f"ix_audit_events_{column}", "audit_events", [column, "position"])
    op.create_table(
        "audit_chain",
        sa.Column("name", sa.String(4), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("seal", sa.LargeBinary()),
        sa.Column("sealed_by", sa.String(16)),
        sa.PrimaryKeyConstraint("name", name="pk_audit_chain"),
    )
    op.create_index("ix_audit_chain_sealed_by", "audit_chain", ["sealed_by"])
    _chain()
    op.drop_table("key_events")


def _chain() -> None:
    conn = op.get_bind()
    old = sa.table("key_events", sa.column("position"), *map(sa.column, _OLD))
    names = ("position", *_OLD, *_NEW, "result", "hash")
    new = sa.table("audit_events", *map(sa.column, names))
    position, digest, after = 0, "0" * 64, -1
    while rows := conn.execute(
        sa.select(old).where(old.c.position > after).order_by(old.c.position).limit(_BATCH)
    ).all():
        chained = []
        for row in rows:
            position += 1
            values = {**{name: getattr(row, name) for name in _OLD}, "token": "", "request": "", "result": "done"}
            digest = _hash(digest, position, values)
            chained.append({**values, "position": position, "hash": digest})
        conn.execute(sa.insert(new), chained)
        after = rows[-1].position
    if position:
        chain = sa.table("audit_chain", *map(sa.column, ("name", "position", "hash")))
        conn.execute(sa.insert(chain), {"name": "head", "position": position, "hash": digest})


def _hash(before: str, position: int, values: dict[str, Any]) -> str:
    """As ``model.audit.hash_of`` has it at this revision."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=values["at"])
    fields = {
        **{name: values[name] for name in ("detail", "job", "source", "subject", "type", *_NEW, "result")},
        "at": at.isoformat().replace("+00:00", "Z"),
        "by": values["by_user"],
        "position": position,
        "user": values["username"],
    }
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(before.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


def downgrade() -> None:
    """Keep of each event what the audit of keys had."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "key_events",
        sa.Column("position", big, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("type", "username", "by_user", "source", "subject")),
        sa.Column("job", sa.String(32)),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_key_events"),
    )
    op.create_index("ix_key_events_username", "key_events", ["username", "position"])
    old = sa.table("audit_events", sa.column("position"), *map(sa.column, _OLD))
    new = sa.table("key_events", *map(sa.column, _OLD))
    op.execute(sa.insert(new).from_select(_OLD, sa.select(*(old.c[name] for name in _OLD)).order_by(old.c.position)))
    op.drop_table("audit_chain")
    op.drop_table("audit_events")
