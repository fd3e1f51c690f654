"""A column for the GPU types of each job, in the index that lists are filtered by.

Revision: 0026, after 0025.
"""

from __future__ import annotations

import json
from collections import defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

FILTERED = ("state", "username", "virtual_cluster", "priority", "uid", "tags", "search", "name")
SORTED = ("submitted_at", "launched_at", "completed_at", "retries", "task_count", "gpu_count")

# The types of the GPUs that the latest run of each task holds or held. JSON is text on both databases.
HELD = """SELECT DISTINCT tasks.job AS job, {gpu_type} AS gpu_type FROM tasks JOIN (
  SELECT job, role_number, task_index, max(attempt) AS attempt FROM tasks GROUP BY job, role_number, task_index
) AS latest ON latest.job = tasks.job AND latest.role_number = tasks.role_number
  AND latest.task_index = tasks.task_index AND latest.attempt = tasks.attempt
WHERE {gpu_type} <> '' AND {gpus} > 0"""

SQLITE = {
    "gpu_type": "json_extract(tasks.body, '$.placement.gpu_type')",
    "gpus": "json_array_length(tasks.body, '$.placement.gpus')",
}
POSTGRESQL = {
    "gpu_type": "(tasks.body::json #>> '{placement,gpu_type}')",
    "gpus": "json_array_length(tasks.body::json #> '{placement,gpus}')",
}

LEAVE = """UPDATE job_groups SET number = number - 1, changes = changes + 1
  WHERE username = OLD.username AND virtual_cluster = OLD.virtual_cluster
  AND priority = coalesce(OLD.priority, '') AND state = OLD.state;"""
ENTER = """INSERT INTO job_groups (username, virtual_cluster, priority, state, number, changes)
  VALUES (NEW.username, NEW.virtual_cluster, coalesce(NEW.priority, ''), NEW.state, 1, 1)
  ON CONFLICT (username, virtual_cluster, priority, state)
  DO UPDATE SET number = job_groups.number + 1, changes = job_groups.changes + 1;"""


def upgrade() -> None:
    """Fill the column from the places of tasks.

    The type that a document asks for is sealed: it is added when the job is saved the next time.
    """
    op.add_column("jobs", sa.Column("gpu_types", sa.Text(), nullable=False, server_default=sa.text("'[]'")))
    _fill()
    _make_index(*FILTERED[:6], "gpu_types", *FILTERED[6:], *SORTED)
    _make_trigger("state", "tags", "gpu_types")


def downgrade() -> None:
    """Drop the column."""
    _make_trigger("state", "tags")
    _make_index(*FILTERED, *SORTED)
    op.drop_column("jobs", "gpu_types")


def _fill() -> None:
    bind = op.get_bind()
    found: defaultdict[str, set[str]] = defaultdict(set)
    for job, gpu_type in bind.execute(sa.text(HELD.format(**_json()))):
        found[job].add(gpu_type)
    if not found:
        return
    jobs = sa.table("jobs", sa.column("uid"), sa.column("gpu_types"))
    change = sa.update(jobs).where(jobs.c.uid == sa.bindparam("uid_")).values(gpu_types=sa.bindparam("types"))
    texts = {job: json.dumps(sorted(types), ensure_ascii=False, separators=(",", ":")) for job, types in found.items()}
    bind.execute(change, [{"uid_": job, "types": text} for job, text in texts.items()])


def _json() -> dict[str, str]:
    return SQLITE if _is_sqlite() else POSTGRESQL


def _make_index(*columns: str) -> None:
    op.drop_index("ix_jobs_filter", "jobs")
    op.create_index("ix_jobs_filter", "jobs", list(columns), unique=False)


def _make_trigger(*columns: str) -> None:
    """Let a change of any of these count as one of the job's group, which ends what lists remember of it."""
    moved = " OR ".join(f"OLD.{column} <> NEW.{column}" for column in columns)
    trigger = f"jobs_move AFTER UPDATE OF {', '.join(columns)} ON jobs"
    if _is_sqlite():
        op.execute("DROP TRIGGER jobs_move")
        op.execute(f"CREATE TRIGGER {trigger} WHEN ({moved}) BEGIN {LEAVE} {ENTER} END")
        return
    op.execute("DROP TRIGGER jobs_move ON jobs")
    op.execute(f"CREATE TRIGGER {trigger} FOR EACH ROW WHEN ({moved}) EXECUTE FUNCTION count_jobs()")


def _is_sqlite() -> bool:
    return op.get_bind().dialect.name == "sqlite"
