"""When a job has run for as long as it may: by its ``maxDuration``, or by the longest run of its virtual cluster. Pure.

An attempt's time begins with the first of its tasks, and goes on while others wait. The next attempt has its time
again; so has a task that is run again alone when no other has begun before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pai_backend.model.duration import duration_text
from pai_backend.model.job import Desired, Job


@dataclass(frozen=True)
class End:
    """When a job is stopped for having run for as long as it may, and what says how long that is."""

    at: datetime
    after: timedelta
    is_own: bool
    """Its document says so; else its virtual cluster."""

    @property
    def sentence(self) -> str:
        """Why the job was stopped."""
        whose = "its maxDuration" if self.is_own else "the longest run in its virtual cluster"
        return f"it has run for {duration_text(int(self.after.total_seconds()))}, {whose}"


def end_of(job: Job, longest_run: timedelta | None) -> End | None:
    """When the job's attempt has run for as long as it may; None: it has not begun, or may run until it is done.

    ``longest_run`` is that of its virtual cluster.
    """
    own = timedelta(seconds=job.spec.max_duration_s) if job.spec.max_duration_s is not None else None
    began = min((task.started_at for task in job.tasks if task.started_at is not None), default=None)
    after = min((each for each in (own, longest_run) if each is not None), default=None)
    is_ending = job.state.final or job.verdict is not None or job.desired is Desired.STOP
    if began is None or after is None or is_ending or job.restarting:
        return None
    return End(began + after, after, is_own=after == own)
