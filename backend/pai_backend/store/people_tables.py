"""The tables of users: who they are, what lets them in, what they want, and what they did (``tables``)."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from pai_backend.store.columns import Instant
from pai_backend.store.columns import metadata as metadata  # complete here: this module has imported all tables
from pai_backend.store.tables import jobs

user_keys = Table(
    "user_keys",
    metadata,
    Column("fingerprint", String(128), primary_key=True),
    Column("username", Text, nullable=False, index=True),
    Column("public_key", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("added_at", Instant, nullable=False),
    Column("name", Text, nullable=False, server_default=text("''")),
    Column("expires_at", Instant),
    # The only job that it is for.
    Column("job", String(32)),
    # The key that this one takes the place of when it is used.
    Column("replaces", String(128), nullable=False, server_default=text("''")),
    Column("last_used_at", Instant),
    Column("last_used_from", Text, nullable=False, server_default=text("''")),
    # Digest of the application token that registered it, with which it ends; empty: none did.
    Column("made_by", String(64), nullable=False, server_default=text("''")),
    # As access_tokens.virtual_cluster, of that token.
    Column("virtual_cluster", Text, nullable=False, server_default=text("''")),
)

user_cas = Table(
    "user_cas",
    metadata,
    # The private half of the newest is the secret ``user-ca-<number>``; those of older ones are gone.
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("public_key", Text, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    Column("made_at", Instant, nullable=False),
)

certificates = Table(
    "certificates",
    metadata,
    Column("serial", BigInteger, primary_key=True, autoincrement=False),
    Column("username", Text, nullable=False),
    Column("fingerprint", String(128), nullable=False),
    Column("ca", String(128), nullable=False),
    # JSON, as are the limits.
    Column("principals", Text, nullable=False),
    Column("limits", Text, nullable=False),
    Column("job", String(32)),
    Column("issued_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False, index=True),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    Column("last_used_from", Text, nullable=False),
    # As of user_keys.
    Column("made_by", String(64), nullable=False, server_default=text("''")),
    # Why an administrator enters another user's job with it; empty: it is for what its user may enter.
    Column("reason", Text, nullable=False, server_default=text("''")),
    Index("ix_certificates_username", "username", "expires_at"),
    Index("ix_certificates_ca", "ca", "expires_at"),
    # As access_tokens.virtual_cluster, of the token that had it made.
    Column("virtual_cluster", Text, nullable=False, server_default=text("''")),
)

shares = Table(
    "shares",
    metadata,
    Column("job", String(32), ForeignKey(jobs.c.uid), nullable=False),
    Column("username", Text, nullable=False, index=True),
    Column("limits", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Instant),
    # As of user_keys.
    Column("made_by", String(64), nullable=False, server_default=text("''")),
    # Of a link: the digest of its token, and the alias of the one service that it opens. ``username`` is its name then.
    Column("link", String(64), nullable=False, server_default=text("''")),
    Column("service", Text, nullable=False, server_default=text("''")),
    PrimaryKeyConstraint("job", "username"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("username", Text, primary_key=True),
    Column("admin", Boolean, nullable=False),
)

# Those that administrators have added; ``accounts`` are those of the configuration.
users = Table(
    "users",
    metadata,
    Column("username", Text, primary_key=True),
    Column("admin", Boolean, nullable=False),
    Column("email", Text, nullable=False),
    Column("password_hash", Text, nullable=False),
    Column("must_change_password", Boolean, nullable=False, server_default=text("false")),
)

# What administrators announce to all users. The last row counts: two at the same moment leave two.
announcements = Table(
    "announcements",
    metadata,
    Column("at", Instant, nullable=False),
    Column("by", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("until", Instant),
    # From when on no job starts; null: it holds up no job.
    Column("no_starts_from", Instant),
    PrimaryKeyConstraint("at", "by"),
)

# What a user, a group or a virtual cluster may use; empty: not limited by that.
budgets = Table(
    "budgets",
    metadata,
    Column("id", String(8), primary_key=True),
    Column("username", Text, nullable=False),
    Column("groupname", Text, nullable=False),
    Column("virtual_cluster", Text, nullable=False),
    Column("resource", String(8), nullable=False),
    Column("per", String(8), nullable=False),
    # Microseconds of one GPU or CPU, or millionths of the currency.
    Column("amount", BigInteger, nullable=False),
    Column("warn_percent", Integer, nullable=False),
    Column("since", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Text, nullable=False),
    # Of which window and level users were warned last.
    Column("told_window", Instant),
    Column("told_level", Integer, nullable=False),
    UniqueConstraint("username", "groupname", "virtual_cluster", "resource", "per"),
)

# What an hour of a GPU type costs from a moment on, in millionths of the currency; null: nothing.
prices = Table(
    "prices",
    metadata,
    # A GPU type, or `cpu`: CPUs of tasks without GPUs.
    Column("kind", Text, nullable=False),
    Column("since", Instant, nullable=False),
    Column("hourly", BigInteger),
    # The same in all rows.
    Column("currency", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Text, nullable=False),
    PrimaryKeyConstraint("kind", "since"),
)

# Which news of their jobs users get, and how.
notifications = Table(
    "notifications",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("username", Text, nullable=False, index=True),
    Column("channel", String(16), nullable=False),
    # Where it leads, as it is shown; ``target`` is the place itself, with the secret that messages are signed with.
    Column("place", Text, nullable=False),
    Column("target", LargeBinary, nullable=False),
    Column("sealed_by", String(16), nullable=False),
    # Separated by spaces.
    Column("news", Text, nullable=False),
    Column("waited_s", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("made_by", String(64), nullable=False, index=True),
    Column("tried_at", Instant),
    Column("sent_at", Instant),
    # Why the last message did not arrive; empty: it did.
    Column("trouble", Text, nullable=False),
    # Notices that were given up.
    Column("lost", Integer, nullable=False),
    Index("ix_notifications_sealed_by_id", "sealed_by", "id"),
)

# What is to be told and has not arrived yet.
notices = Table(
    "notices",
    metadata,
    Column("notification", String(16), ForeignKey("notifications.id"), nullable=False),
    # Empty for a test, whose ``seq`` is a number of its own.
    Column("job", String(32), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Instant, nullable=False),
    Column("news", String(16), nullable=False),
    Column("name", Text, nullable=False),
    Column("text", Text, nullable=False),
    # The message that it is a part of, from its first try on; empty before.
    Column("message", String(32), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", Instant, nullable=False, index=True),
    PrimaryKeyConstraint("notification", "job", "seq"),
)

# One row: the position in ``events`` up to which notices were made.
noticed = Table(
    "noticed",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
)

# What providers that sign users in, OpenID Connect or a JupyterHub, know them by.
external_users = Table(
    "external_users",
    metadata,
    Column("username", Text, nullable=False),
    Column("issuer", Text, nullable=False),
    Column("subject", Text, nullable=False),
    PrimaryKeyConstraint("username", "issuer"),
)

groups = Table(
    "groups",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("description", Text, nullable=False),
    Column("external_name", Text, nullable=False),
)
"""Groups that administrators have added. A row ``default`` says that the grants of that group count."""

group_members = Table(
    "group_members",
    metadata,
    Column("groupname", String(64), ForeignKey("groups.name"), nullable=False),
    Column("username", Text, nullable=False, index=True),
    PrimaryKeyConstraint("groupname", "username"),
)

vc_grants = Table(
    "vc_grants",
    metadata,
    # "user" or "group"; the subject is the name of either.
    Column("kind", String(8), nullable=False),
    Column("subject", Text, nullable=False),
    Column("virtual_cluster", Text, nullable=False),
    # Whether the subject manages the virtual cluster too.
    Column("manages", Boolean, nullable=False),
    PrimaryKeyConstraint("kind", "subject", "virtual_cluster"),
)

kept_documents = Table(
    "kept_documents",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("username", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("name", String(63), nullable=False),
    Column("filename", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("source", LargeBinary, nullable=False),
    Column("sealed_by", String(16), nullable=False),
    UniqueConstraint("username", "kind", "name"),
    Index("ix_kept_documents_sealed_by_id", "sealed_by", "id"),
)

# What documents of these users may take by name.
user_secrets = Table(
    "user_secrets",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("username", Text, nullable=False),
    Column("name", String(63), nullable=False),
    Column("set_at", Instant, nullable=False),
    # When a submission took it last.
    Column("used_at", Instant),
    Column("value", LargeBinary, nullable=False),
    Column("sealed_by", String(16), nullable=False),
    UniqueConstraint("username", "name"),
    Index("ix_user_secrets_sealed_by_id", "sealed_by", "id"),
)

ssh_lockouts = Table(
    "ssh_lockouts",
    metadata,
    Column("username", Text, primary_key=True),
    Column("locked_at", Instant, nullable=False),
    Column("locked_by", Text, nullable=False),
)

audit_events = Table(
    "audit_events",
    metadata,
    # Counted by the chain, without gaps.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False, index=True),
    Column("type", Text, nullable=False),
    Column("username", Text, nullable=False),
    Column("by_user", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("job", String(32)),
    Column("detail", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    Index("ix_audit_events_username", "username", "position"),
    Index("ix_audit_events_by_user", "by_user", "position"),
    Index("ix_audit_events_job", "job", "position"),
)

# Two rows: ``root``, the last event that was cut off, and ``head``, the last one.
audit_chain = Table(
    "audit_chain",
    metadata,
    Column("name", String(4), primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    # Position and hash once more, sealed: who can write here alone cannot make it.
    Column("seal", LargeBinary),
    Column("sealed_by", String(16), index=True),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    # The SHA-256 of the token, never the token.
    Column("digest", String(64), primary_key=True),
    Column("username", Text, nullable=False, index=True),
    Column("application", Boolean, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("name", Text, nullable=False, server_default=text("''")),
    # Separated by spaces; empty: everything that its user may.
    Column("scopes", Text, nullable=False, server_default=text("''")),
    Column("last_used_at", Instant),
    # Empty: all.
    Column("virtual_cluster", Text, nullable=False, server_default=text("''")),
)

claims = Table(
    "claims",
    metadata,
    Column("name", Text, primary_key=True),
    Column("expires_at", Instant, nullable=False, index=True),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("sealed_by", String(16), nullable=False),
    Index("ix_secrets_sealed_by_name", "sealed_by", "name"),
)
