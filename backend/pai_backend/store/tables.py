"""The tables, as SQLAlchemy metadata; the same on SQLite and PostgreSQL.

``jobs`` holds what changes and what lists show, in narrow rows; what was asked for (``documents``)
is written once and never touched again. JSON is kept as text, exactly as it was written. What may hold a secret
(a document, a private key, a secret of ours) is sealed by ``cipher``, and ``sealed_by`` names the key.
Changing anything here needs a migration; a test compares this metadata with the migrated schema.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

from pai_backend.store import triggers

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """An aware time, kept as whole microseconds since 1970 UTC.

    An integer sorts and compares alike on both databases and loses nothing; SQLite has no time type.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Raises ValueError for a naive time: it would be a different instant on another machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a zone cannot be stored: {value!r}")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """The time again, in UTC."""
        return None if value is None else _EPOCH + timedelta(microseconds=value)


# Explicit names, so that a migration can name what it alters on every database.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

ORDERED = (
    "submitted_at",
    "launched_at",
    "completed_at",
    "name",
    "virtual_cluster",
    "state",
    "retries",
    "task_count",
    "gpu_count",
    "priority",
)
"""Columns of ``jobs`` that lists can be ordered by, besides ``username``."""

jobs = Table(
    "jobs",
    metadata,
    Column("uid", String(32), primary_key=True),
    Column("name", Text, nullable=False),
    Column("username", Text, nullable=False),
    Column("alias", String(63), nullable=False, unique=True),
    Column("virtual_cluster", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("phase", String(32), nullable=False),
    Column("why", Text, nullable=False),
    Column("desired", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("platform_retries", Integer, nullable=False),
    Column("resource_retries", Integer, nullable=False),
    Column("priority", String(8)),
    Column("tags", Text, nullable=False),
    Column("search", Text, nullable=False),
    Column("role_count", Integer, nullable=False),
    Column("task_count", Integer, nullable=False),
    Column("gpu_count", Integer, nullable=False),
    Column("warning_count", Integer, nullable=False),
    Column("exit_status", Integer),
    Column("submitted_at", Instant, nullable=False),
    Column("launched_at", Instant),
    Column("completed_at", Instant),
    Column("version", Integer, nullable=False),
    Column("last_seq", Integer, nullable=False),
    Column("dirty", Boolean, nullable=False),
    Column("settled", Boolean, nullable=False),
    Column("rest", Text, nullable=False),
    # Name first: a group of submits is checked by ``name IN (…)`` over all users at once.
    UniqueConstraint("name", "username"),
    # All that lists filter and order by, so that any filter is looked for without a look at the wide rows.
    Index(
        "ix_jobs_filter",
        *("state", "username", "virtual_cluster", "priority", "uid", "tags", "search", "name"),
        *("submitted_at", "launched_at", "completed_at", "retries", "task_count", "gpu_count"),
    ),
    # One for each order of lists: most pages are read along it. It has the owner for all who see only their own jobs.
    *(Index(f"ix_jobs_by_{column}", column, "uid", "username") for column in ORDERED),
    Index("ix_jobs_by_username", "username", "uid"),
    # The controller asks for these two all day long; almost no job is in them.
    Index("ix_jobs_dirty", "submitted_at", "uid", sqlite_where=text("dirty = 1"), postgresql_where=text("dirty")),
    Index(
        "ix_jobs_unsettled",
        "submitted_at",
        "uid",
        sqlite_where=text("settled = 0"),
        postgresql_where=text("NOT settled"),
    ),
)

# PostgreSQL reads an index backwards with the empty values first; lists have them last in both directions.
for _column in ("launched_at", "completed_at", "priority"):
    Index(f"ix_jobs_by_{_column}_down", jobs.c[_column].desc().nulls_last(), jobs.c.uid.desc(), jobs.c.username).ddl_if(
        dialect="postgresql"
    )

job_groups = Table(
    "job_groups",
    metadata,
    Column("username", Text, nullable=False),
    Column("virtual_cluster", Text, nullable=False),
    # Empty for jobs that name none.
    Column("priority", String(8), nullable=False),
    Column("state", String(16), nullable=False),
    # How many jobs are in the group, and how many have come, gone or got other tags: this one only grows.
    Column("number", Integer, nullable=False),
    Column("changes", BigInteger, nullable=False),
    PrimaryKeyConstraint("username", "virtual_cluster", "priority", "state"),
)
"""Numbers of jobs, kept by triggers on ``jobs`` (``triggers``): no list has to count."""

triggers.attach(job_groups)

documents = Table(
    "documents",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), primary_key=True),
    Column("spec", LargeBinary, nullable=False),
    Column("filename", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("source", LargeBinary, nullable=False),
    Column("secrets", LargeBinary),
    Column("sealed_by", String(16), nullable=False),
    Index("ix_documents_sealed_by_job", "sealed_by", "job"),
)

tasks = Table(
    "tasks",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("role_number", Integer, nullable=False),
    Column("task_index", Integer, nullable=False),
    Column("body", Text, nullable=False),
    # These four are the task uid, split so that the key keeps document order.
    PrimaryKeyConstraint("job", "attempt", "role_number", "task_index"),
)

events = Table(
    "events",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    # No foreign key: the event of a job's deletion outlives the job.
    Column("job", String(32), nullable=False),
    Column("username", Text, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", Text, nullable=False),
    UniqueConstraint("job", "seq"),
)

port_leases = Table(
    "port_leases",
    metadata,
    Column("machine", Text, nullable=False),
    Column("port", Integer, nullable=False),
    Column("owner", String(64), nullable=False, index=True),
    PrimaryKeyConstraint("machine", "port"),
)

deletions = Table(
    "deletions",
    metadata,
    Column("job", String(32), primary_key=True),
    Column("asked_by", Text, nullable=False),
    Column("cause", String(16), nullable=False),
    Column("asked_at", Instant, nullable=False),
    # Of the event that tells of it; NULL while the job's rows are there.
    Column("position", BigInteger),
    # When nothing was left of the job; NULL before.
    Column("cleared_at", Instant),
    # The controller asks for these; almost always there is none.
    Index(
        "ix_deletions_open",
        "asked_at",
        "job",
        sqlite_where=text("cleared_at IS NULL"),
        postgresql_where=text("cleared_at IS NULL"),
    ),
)
"""Jobs that are deleted, or are to be as soon as their tasks are forgotten. A row is removed some days after."""

explanations = Table(
    "explanations",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), primary_key=True),
    Column("asked_at", Instant, nullable=False),
    Column("answered_at", Instant),
    Column("body", Text, nullable=False),
    Column("open", Boolean, nullable=False),
    # The controller asks for these whenever anything was written; almost always there is none.
    Index(
        "ix_explanations_open",
        "asked_at",
        "job",
        sqlite_where=text("open = 1"),
        postgresql_where=text("open"),
    ),
)

cluster_configs = Table(
    "cluster_configs",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("origin", String(16), nullable=False),
    Column("username", Text, nullable=False),
    Column("recorded_at", Instant, nullable=False),
    Column("in_force_at", Instant),
    Column("effects", Text, nullable=False),
    # Empty: to be derived from the nodes.
    Column("text", Text, nullable=False),
)

# Tasks at their places, for whom and from when until when; they outlive their jobs.
stays = Table(
    "stays",
    metadata,
    Column("task", String(64), nullable=False),
    Column("began_at", Instant, nullable=False),
    Column("ended_at", Instant, index=True),
    Column("job", String(17), nullable=False),
    Column("username", Text, nullable=False),
    Column("virtual_cluster", Text, nullable=False),
    Column("gpu_type", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("cpus", Integer, nullable=False),
    Column("opportunistic", Boolean, nullable=False),
    PrimaryKeyConstraint("task", "began_at"),
)

other_holders = Table(
    "other_holders",
    metadata,
    Column("node", Text, primary_key=True),
    Column("cpus", Integer, nullable=False),
    Column("memory_mb", BigInteger, nullable=False),
    Column("gpus", Integer, nullable=False),
)

run_times = Table(
    "run_times",
    metadata,
    Column("username", Text, nullable=False),
    # What jobs that may be expected to run alike have in common, hashed.
    Column("kind", String(32), nullable=False),
    # A JSON list of the last few, the latest last.
    Column("seconds", Text, nullable=False),
    Column("last_at", Instant, nullable=False),
    PrimaryKeyConstraint("username", "kind"),
    Index("ix_run_times_last_at", "last_at", "username", "kind"),
)

job_uses = Table(
    "job_uses",
    metadata,
    # The last use of a job with an idle timeout, by what used it.
    Column("job", String(32), ForeignKey("jobs.uid"), nullable=False),
    Column("source", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("job", "source"),
)

idle_clocks = Table(
    "idle_clocks",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), primary_key=True),
    # JSON of ``model.idle.IdleClock``.
    Column("body", Text, nullable=False),
)

controller_lease = Table(
    "controller_lease",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

task_keys = Table(
    "task_keys",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("private_pem", LargeBinary, nullable=False),
    Column("public", Text, nullable=False),
    Column("sealed_by", String(16), nullable=False),
    # Of keys that log a user in; host keys have none.
    Column("fingerprint", String(128), index=True),
    Index("ix_task_keys_sealed_by_owner", "sealed_by", "owner"),
)

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
)

shares = Table(
    "shares",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), nullable=False),
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

addresses = Table(
    "addresses",
    metadata,
    Column("username", Text, nullable=False),
    Column("name", String(63), nullable=False),
    # What jobs that hold it are called by all users: the name itself unless that was taken when it was reserved.
    Column("alias", String(63), nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    PrimaryKeyConstraint("username", "name"),
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

login_starts = Table(
    "login_starts",
    metadata,
    Column("job", String(32), primary_key=True),
    Column("asked_at", Instant, nullable=False),
    Column("refusal", Text),
)

submission_keys = Table(
    "submission_keys",
    metadata,
    Column("username", Text, nullable=False),
    Column("key", String(255), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("job", String(32), nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("username", "key"),
    Index("ix_submission_keys_at", "at"),
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

orphans = Table(
    "orphans",
    metadata,
    Column("task", String(128), primary_key=True),
    # Identity of the database that the task was started from; empty when the task does not say.
    Column("database", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("since", Instant),
    Column("seen_at", Instant, nullable=False),
    # Why its job was not taken back.
    Column("why", Text, nullable=False),
    # Who asked for its end; empty while it was not asked for.
    Column("ended_by", Text, nullable=False),
)
