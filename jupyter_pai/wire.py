"""What states mean, and the tasks of a job: words about the shapes of :mod:`jupyter_pai.wire_types`."""

from __future__ import annotations

from jupyter_pai.wire_types import JobDetail, TaskWire

FINAL_STATES = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
"""States after which nothing changes. Source: pai_backend.model.job.State.final (a test compares them)."""

ACTIVE_STATES = ("WAITING", "RUNNING", "STOPPING")
"""All other states, in the order a job passes through them."""

LOG_TIMED_BYTES = 262_144
"""Of so many bytes of a log the times are given at once."""

LOG_PAGE_BYTES = 1_048_576
"""What the API gives of a log at once, unless it is asked for more."""


def tasks_of(job: JobDetail) -> list[TaskWire]:
    """All tasks of the current attempt, role by role."""
    return [task for role in job["taskRoles"] for task in role["taskStatuses"]]
