"""The first tables.

Revision: 0001, the first.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make them, with their indexes."""
    op.create_table(
        "controller_lease",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_controller_lease"),
    )
    op.create_table(
        "jobs",
        sa.Column("uid", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("alias", sa.String(length=63), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("desired", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("retries", sa.Integer(), nullable=False),
        sa.Column("platform_retries", sa.Integer(), nullable=False),
        sa.Column("resource_retries", sa.Integer(), nullable=False),
        sa.Column("priority", sa.String(length=8), nullable=True),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.Column("role_count", sa.Integer(), nullable=False),
        sa.Column("task_count", sa.Integer(), nullable=False),
        sa.Column("gpu_count", sa.Integer(), nullable=False),
        sa.Column("warning_count", sa.Integer(), nullable=False),
        sa.Column("exit_status", sa.Integer(), nullable=True),
        sa.Column("submitted_at", sa.BigInteger(), nullable=False),
        sa.Column("launched_at", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.Integer(), nullable=False),
        sa.Column("dirty", sa.Boolean(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.Column("rest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name="pk_jobs"),
        sa.UniqueConstraint("alias", name="uq_jobs_alias"),
        sa.UniqueConstraint("name", "username", name="uq_jobs_name_username"),
    )
    op.create_index(
        "ix_jobs_dirty",
        "jobs",
        ["submitted_at", "uid"],
        unique=False,
        sqlite_where=sa.text("dirty = 1"),
        postgresql_where=sa.text("dirty"),
    )
    filtered = ["state", "username", "virtual_cluster", "priority", "uid", "tags", "search", "name"]
    filtered += ["submitted_at", "launched_at", "completed_at", "retries", "task_count", "gpu_count"]
    op.create_index("ix_jobs_filter", "jobs", filtered, unique=False)
    orders = ["submitted_at", "launched_at", "completed_at", "name", "virtual_cluster", "state"]
    for column in [*orders, "retries", "task_count", "gpu_count", "priority"]:
        op.create_index(f"ix_jobs_by_{column}", "jobs", [column, "uid", "username"], unique=False)
    op.create_index("ix_jobs_by_username", "jobs", ["username", "uid"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        for column in ("launched_at", "completed_at", "priority"):
            down: list[str | sa.TextClause] = [sa.text(f"{column} DESC NULLS LAST"), sa.text("uid DESC"), "username"]
            op.create_index(f"ix_jobs_by_{column}_down", "jobs", down, unique=False)
    _create_groups()
    op.create_index(
        "ix_jobs_unsettled",
        "jobs",
        ["submitted_at", "uid"],
        unique=False,
        sqlite_where=sa.text("settled = 0"),
        postgresql_where=sa.text("NOT settled"),
    )
    op.create_table(
        "access_tokens",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("application", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name="pk_access_tokens"),
    )
    op.create_index("ix_access_tokens_username", "access_tokens", ["username"], unique=False)
    op.create_table(
        "port_leases",
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("machine", "port", name="pk_port_leases"),
    )
    op.create_index("ix_port_leases_owner", "port_leases", ["owner"], unique=False)
    op.create_table(
        "claims",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_claims"),
    )
    op.create_index("ix_claims_expires_at", "claims", ["expires_at"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_by", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_index("ix_secrets_sealed_by_name", "secrets", ["sealed_by", "name"], unique=False)
    op.create_table(
        "task_keys",
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("private_pem", sa.LargeBinary(), nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("sealed_by", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_task_keys"),
    )
    op.create_index("ix_task_keys_sealed_by_owner", "task_keys", ["sealed_by", "owner"], unique=False)
    op.create_table(
        "user_keys",
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_user_keys"),
    )
    op.create_index("ix_user_keys_username", "user_keys", ["username"], unique=False)
    op.create_table(
        "documents",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("secrets", sa.LargeBinary(), nullable=True),
        sa.Column("sealed_by", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_documents_job"),
        sa.PrimaryKeyConstraint("job", name="pk_documents"),
    )
    op.create_index("ix_documents_sealed_by_job", "documents", ["sealed_by", "job"], unique=False)
    op.create_table(
        "events",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_events_job"),
        sa.PrimaryKeyConstraint("position", name="pk_events"),
        sa.UniqueConstraint("job", "seq", name="uq_events_job_seq"),
    )
    op.create_table(
        "tasks",
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("role_number", sa.Integer(), nullable=False),
        sa.Column("task_index", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.uid"], name="fk_tasks_job"),
        sa.PrimaryKeyConstraint("job", "attempt", "role_number", "task_index", name="pk_tasks"),
    )


def _create_groups() -> None:
    """The numbers of jobs and the triggers that keep them."""
    op.create_table(
        "job_groups",
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("virtual_cluster", sa.Text(), nullable=False),
        sa.Column("priority", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("username", "virtual_cluster", "priority", "state", name="pk_job_groups"),
    )
    leave = """UPDATE job_groups SET number = number - 1, changes = changes + 1
  WHERE username = OLD.username AND virtual_cluster = OLD.virtual_cluster
  AND priority = coalesce(OLD.priority, '') AND state = OLD.state;"""
    enter = """INSERT INTO job_groups (username, virtual_cluster, priority, state, number, changes)
  VALUES (NEW.username, NEW.virtual_cluster, coalesce(NEW.priority, ''), NEW.state, 1, 1)
  ON CONFLICT (username, virtual_cluster, priority, state)
  DO UPDATE SET number = job_groups.number + 1, changes = job_groups.changes + 1;"""
    moved = "(OLD.state <> NEW.state OR OLD.tags <> NEW.tags)"
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"CREATE TRIGGER jobs_enter AFTER INSERT ON jobs BEGIN {enter} END")
        op.execute(f"CREATE TRIGGER jobs_leave AFTER DELETE ON jobs BEGIN {leave} END")
        op.execute(
            f"CREATE TRIGGER jobs_move AFTER UPDATE OF state, tags ON jobs WHEN {moved} BEGIN {leave} {enter} END"
        )
        return
    op.execute(
        f"""CREATE FUNCTION count_jobs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN {leave} END IF;
  IF TG_OP <> 'DELETE' THEN {enter} END IF;
  RETURN NULL; END $$"""
    )
    counts = "FOR EACH ROW EXECUTE FUNCTION count_jobs()"
    op.execute(f"CREATE TRIGGER jobs_enter AFTER INSERT ON jobs {counts}")
    op.execute(f"CREATE TRIGGER jobs_leave AFTER DELETE ON jobs {counts}")
    counts_moved = f"FOR EACH ROW WHEN {moved} EXECUTE FUNCTION count_jobs()"
    op.execute(f"CREATE TRIGGER jobs_move AFTER UPDATE OF state, tags ON jobs {counts_moved}")


def downgrade() -> None:
    """Drop them, those that refer to others first."""
    for table in (
        "access_tokens",
        "tasks",
        "events",
        "documents",
        "user_keys",
        "task_keys",
        "secrets",
        "claims",
        "port_leases",
        "jobs",
        "job_groups",
        "controller_lease",
    ):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION count_jobs()")
