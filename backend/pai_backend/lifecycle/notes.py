"""Why tasks are asked to end: a pure comparison of a job before and after, as :mod:`.history` makes."""

from __future__ import annotations

from collections.abc import Iterator

from pai_backend.model.job import Desired, Job, Phase, StopCause, Task
from pai_backend.model.task_note import NoteReason, TaskNote

_OF_CAUSE = {
    StopCause.USER: (NoteReason.USER_STOPPED, "a user has stopped its job"),
    StopCause.IDLE: (NoteReason.IDLE_STOPPED, "nothing has used its job for as long as its idleTimeout"),
    StopCause.DURATION: (NoteReason.DURATION_STOPPED, "its job has run for as long as it may"),
}


def stop_notes(before: Job, after: Job) -> Iterator[TaskNote]:
    """A note for each task that this change asks to end."""
    for task in after.tasks:
        was = before.task(task.uid)
        if task.phase is Phase.STOPPING and was is not None and was.phase is not Phase.STOPPING:
            yield TaskNote(task.uid, *_why(after, task))


def _why(job: Job, task: Task) -> tuple[NoteReason, str]:
    if job.desired is Desired.STOP:
        return _OF_CAUSE[job.stop_cause]
    if task.preempted_by:
        by, _, priority = task.preempted_by.rpartition(", ")
        return NoteReason.PREEMPTED, f"it makes way for the job {by.partition('~')[2] or by} ({priority})"
    outcome = job.verdict.outcome.value.lower() if job.verdict is not None else "ended"
    decided = job.verdict.exit if job.verdict is not None else None
    by_task = f", which task {decided.role}-{decided.index} decided" if decided is not None and decided.role else ""
    return NoteReason.JOB_ENDED, f"its job or this attempt of it has {outcome}{by_task}"
