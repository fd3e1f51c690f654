"""The tables of jobs and the cluster, as SQLAlchemy metadata; the same on SQLite and PostgreSQL.

``jobs`` holds what changes and what lists show, in narrow rows; what was asked for (``documents``)
is written once and never touched again. JSON is kept as text, exactly as it was written. What may hold a secret
(a document, a private key, a secret of ours) is sealed by ``cipher``, and ``sealed_by`` names the key.
Changing anything here needs a migration; a test compares this metadata with the migrated schema.
"""

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

from pai_backend.store import triggers
from pai_backend.store.columns import Instant, metadata

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
    # A JSON list, as the tags are; empty for jobs that an earlier version saved last and that held no GPU.
    Column("gpu_types", Text, nullable=False, server_default=text("'[]'")),
    # How ``why`` was made, as JSON; empty where it has no template, and of jobs that an earlier version saved last.
    Column("why_wording", Text, nullable=False, server_default=text("''")),
    # Name first: a group of submits is checked by ``name IN (…)`` over all users at once.
    UniqueConstraint("name", "username"),
    # All that lists filter and order by, so that any filter is looked for without a look at the wide rows.
    Index(
        "ix_jobs_filter",
        *("state", "username", "virtual_cluster", "priority", "uid", "tags", "gpu_types", "search", "name"),
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
    # How many jobs are in the group, and how many have come, gone or got other tags or types: this one only grows.
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

# What the rules of its virtual cluster have led to: one row for each kind of rule that watches the job.
rule_clocks = Table(
    "rule_clocks",
    metadata,
    Column("job", String(32), ForeignKey("jobs.uid"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    # JSON of ``model.rule_clock``.
    Column("body", Text, nullable=False),
)

# Rules of virtual clusters that are set while the backend runs.
vc_rules = Table(
    "vc_rules",
    metadata,
    Column("vc", Text, primary_key=True),
    # JSON of ``model.vc_rules.VcRules``.
    Column("body", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Text, nullable=False),
    # When the longest run was last set or removed; null: it never was.
    Column("longest_run_at", Instant),
)

# Reservations of GPUs of virtual clusters.
bookings = Table(
    "bookings",
    metadata,
    Column("id", String(8), primary_key=True),
    Column("virtual_cluster", Text, nullable=False),
    Column("begins", Instant, nullable=False),
    Column("ends", Instant, nullable=False),
    # JSON of the rest of ``model.booking.Booking``.
    Column("body", Text, nullable=False),
    Column("made_at", Instant, nullable=False),
    Column("made_by", Text, nullable=False),
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
