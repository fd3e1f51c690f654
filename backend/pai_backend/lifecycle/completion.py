"""When an attempt is decided, and how.

A task counts once it is over and will not be run again alone. A rule that is None (null or -1 in a document) is off.

Sources: OpenPAI v1 field table of the seeds (minFailedTaskCount, minSucceededTaskCount, null); QIZHI's
killAllOnCompletedTaskNumber, 0 for off; OpenPAI v2 completion, where any role can end the job: a role whose
minSucceededInstances is all of its instances ends it for the others too, so the first complete role does. A failure
that is free to retry decides the attempt of a gang by itself, whatever the role's rules say: it has to be run again.
"""

from __future__ import annotations

from datetime import datetime

from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.retry import runs_again_alone
from pai_backend.model.job import Job, JobExit, State, StopCause, Task, Verdict
from pai_backend.model.spec import TaskRole

STOPPED_STATUS = -210
"""OpenPAI's exit code of a job that was asked to stop (FrameworkController StopFrameworkRequested)."""


def decide(job: Job) -> Verdict | None:
    """The verdict on the current attempt as its tasks are now, or None while it is open."""
    done = [task for task in job.tasks if task.is_over and not runs_again_alone(job, task)]
    for task in done:
        if task.exit is not None and explain(task.exit).kind.free:
            return _failed(task)
    for role in job.spec.task_roles:
        verdict = _by_role(role, [task for task in done if task.role == role.name])
        if verdict is not None:
            return verdict
    limit = job.spec.kill_all_on_completed
    if limit and len(done) >= limit:
        return _succeeded(f"{len(done)} tasks have completed")
    return _succeeded("all tasks are done") if len(done) == len(job.tasks) else None


def stopped(reason: str, cause: StopCause) -> Verdict:
    """The verdict of a stop request."""
    exit_ = JobExit(status=STOPPED_STATUS, message=reason or "stopped on request", cause=cause)
    return Verdict(outcome=State.STOPPED, exit=exit_)


def _by_role(role: TaskRole, done: list[Task]) -> Verdict | None:
    failed = [task for task in done if task.exit is not None and task.exit.status != 0]
    rule = role.completion
    if rule.min_failed is not None and 1 <= rule.min_failed <= len(failed):
        in_time = sorted(failed, key=_ended_at)
        return _failed(in_time[rule.min_failed - 1])
    succeeded = len(done) - len(failed)
    if rule.min_succeeded is not None and 1 <= rule.min_succeeded <= succeeded:
        return _succeeded(f"{succeeded} of role {role.name} succeeded", role.name)
    return None


def _ended_at(task: Task) -> datetime:
    if task.exit is None:
        raise AssertionError("a task that is over has an exit")
    return task.exit.at


def _succeeded(message: str, role: str | None = None) -> Verdict:
    return Verdict(outcome=State.SUCCEEDED, exit=JobExit(status=0, message=message, role=role))


def _failed(task: Task) -> Verdict:
    if task.exit is None:
        raise AssertionError("a task that is over has an exit")
    meaning = explain(task.exit)
    exit_ = JobExit(
        status=task.exit.status,
        message=f"task {task.name}: {task.exit.message}",
        remedy=meaning.remedy,
        role=task.role,
        index=task.index,
    )
    return Verdict(outcome=State.FAILED, causer=meaning.causer, kind=meaning.kind, exit=exit_)
