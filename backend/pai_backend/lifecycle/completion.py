"""When an attempt is decided, and how.

Source: OpenPAI v1 field table of the seeds (minFailedTaskCount, minSucceededTaskCount, null) and
QIZHI's killAllOnCompletedTaskNumber. A task that the platform lost decides the attempt by itself,
whatever the role's rules say, because it has to be run again and that must be free.
"""

from __future__ import annotations

from pai_backend.model.job import Causer, Job, JobExit, Phase, State, Task, Verdict
from pai_backend.model.spec import TaskRole

STOPPED_STATUS = -210
"""OpenPAI's exit code of a job that was asked to stop (FrameworkController StopFrameworkRequested)."""


def decide(job: Job) -> Verdict | None:
    """The verdict on the current attempt as its tasks are now, or None while it is open."""
    ended = [task for task in job.tasks if task.phase is Phase.ENDED and task.exit is not None]
    for task in ended:
        if task.exit is not None and task.exit.causer is Causer.PLATFORM:
            return _failed(task)
    for role in job.spec.task_roles:
        verdict = _by_role(role, [task for task in ended if task.role == role.name])
        if verdict is not None:
            return verdict
    limit = job.spec.kill_all_on_completed
    if limit and len(ended) >= limit:
        return Verdict(outcome=State.SUCCEEDED, exit=JobExit(status=0, message=f"{len(ended)} tasks have completed"))
    if len(ended) == len(job.tasks):
        return Verdict(outcome=State.SUCCEEDED, exit=JobExit(status=0, message="all tasks are done"))
    return None


def stopped(reason: str) -> Verdict:
    """The verdict of a stop request."""
    return Verdict(outcome=State.STOPPED, exit=JobExit(status=STOPPED_STATUS, message=reason or "stopped on request"))


def _by_role(role: TaskRole, ended: list[Task]) -> Verdict | None:
    failed = [task for task in ended if task.exit is not None and task.exit.status != 0]
    rule = role.completion
    if rule.min_failed is not None and len(failed) >= rule.min_failed:
        return _failed(failed[rule.min_failed - 1])
    succeeded = len(ended) - len(failed)
    if rule.min_succeeded is not None and succeeded >= rule.min_succeeded:
        message = f"{succeeded} of role {role.name} succeeded"
        return Verdict(outcome=State.SUCCEEDED, exit=JobExit(status=0, message=message, role=role.name))
    return None


def _failed(task: Task) -> Verdict:
    if task.exit is None:
        raise AssertionError("an ended task has an exit")
    text = task.exit.message or f"exit status {task.exit.status}"
    return Verdict(
        outcome=State.FAILED,
        causer=task.exit.causer,
        reason=task.exit.reason,
        exit=JobExit(status=task.exit.status, message=f"task {task.name}: {text}", role=task.role, index=task.index),
    )
