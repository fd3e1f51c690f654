"""A job that has ended runs again: under its own uid, name and alias, as its next attempt.

The wish is written on the job, which waits from then on; its tasks run again once the engine has forgotten their last
runs (``step``). A stop before that takes the wish back, and the job has ended as it had before.
"""

from __future__ import annotations

from datetime import datetime

from pai_backend.model.job import Desired, Job, Phase, State, StopCause
from pai_backend.model.text import NO_TEXT, Text


def restarted(job: Job, at: datetime) -> Job:
    """The job that waits for its next attempt; one that has not ended is left as it is."""
    if not job.state.final:
        return job
    forgotten = all(task.forgotten for task in job.tasks)
    return job.model_copy(
        update={
            "restarting": True,
            "state": State.WAITING,
            "phase": Phase.QUEUED,
            "why": NO_TEXT if forgotten else Text("what is left of its last run is being removed"),
            "desired": Desired.START,
            "stop_reason": "",
            "stop_cause": StopCause.USER,
            "turn_at": at,
            "put_off_s": None,
            "launched_at": None,
            "completed_at": None,
            "exit": None,
        }
    )
