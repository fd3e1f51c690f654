"""The triggers that keep ``job_groups`` true, for every writer of ``jobs``.

They run in the writer's transaction, so that a number is never seen without the jobs it counts. A group that lost its
last job keeps its row: ``changes`` must never go back.
"""

from __future__ import annotations

from sqlalchemy import DDL, Table, event

_LEAVE = """UPDATE job_groups SET number = number - 1, changes = changes + 1
  WHERE username = OLD.username AND virtual_cluster = OLD.virtual_cluster
  AND priority = coalesce(OLD.priority, '') AND state = OLD.state;"""
_ENTER = """INSERT INTO job_groups (username, virtual_cluster, priority, state, number, changes)
  VALUES (NEW.username, NEW.virtual_cluster, coalesce(NEW.priority, ''), NEW.state, 1, 1)
  ON CONFLICT (username, virtual_cluster, priority, state)
  DO UPDATE SET number = job_groups.number + 1, changes = job_groups.changes + 1;"""
_MOVED = "(OLD.state <> NEW.state OR OLD.tags <> NEW.tags OR OLD.gpu_types <> NEW.gpu_types)"

SQLITE = (
    f"CREATE TRIGGER jobs_enter AFTER INSERT ON jobs BEGIN {_ENTER} END",
    f"CREATE TRIGGER jobs_leave AFTER DELETE ON jobs BEGIN {_LEAVE} END",
    f"CREATE TRIGGER jobs_move AFTER UPDATE OF state, tags, gpu_types ON jobs"
    f" WHEN {_MOVED} BEGIN {_LEAVE} {_ENTER} END",
)
"""Statements that make them in SQLite."""

POSTGRESQL = (
    f"""CREATE FUNCTION count_jobs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP <> 'INSERT' THEN {_LEAVE} END IF;
  IF TG_OP <> 'DELETE' THEN {_ENTER} END IF;
  RETURN NULL; END $$""",
    "CREATE TRIGGER jobs_enter AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION count_jobs()",
    "CREATE TRIGGER jobs_leave AFTER DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION count_jobs()",
    "CREATE TRIGGER jobs_move AFTER UPDATE OF state, tags, gpu_types ON jobs FOR EACH ROW"
    f" WHEN {_MOVED} EXECUTE FUNCTION count_jobs()",
)
"""Statements that make them in PostgreSQL."""


def attach(job_groups: Table) -> None:
    """Have them made together with the table, which is made after ``jobs``."""
    for dialect, statements in (("sqlite", SQLITE), ("postgresql", POSTGRESQL)):
        for statement in statements:
            ddl = DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy's own omission
            event.listen(job_groups, "after_create", ddl.execute_if(dialect=dialect))
