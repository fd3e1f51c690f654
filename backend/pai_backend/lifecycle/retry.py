"""When an attempt is decided and how; whether what ended is run again, and when; and the next run.

A task counts once it is over and will not be run again alone. A rule that is None (null or -1 in a document) is off.
``Task.attempt`` counts the runs of a slot and is never reused, whatever made it run again, because the task uid is
made from it; ``Task.job_attempt`` says which attempt of the job a run belongs to.

Source of retries: OpenPAI retryCount and taskRetryCount (its framework controller's retry policy): n retries of
failures of the class *unknown*, -1 without limit, -2 always, even after success and whatever the class. Transient
failures are free and have no limit, permanent ones are never retried. Preemption and lost nodes are transient
(architecture §7).

Sources of completion: OpenPAI v1 field table of the seeds (minFailedTaskCount, minSucceededTaskCount, null); QIZHI's
killAllOnCompletedTaskNumber, 0 for off; OpenPAI v2 completion, where any role can end the job: a role whose
minSucceededInstances is all of its instances ends it for the others too, so the first complete role does. A failure
that is free to retry decides the attempt of a gang by itself, whatever the role's rules say: it has to be run again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.table import Happening, advance
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import (
    Causer,
    Desired,
    ExitKind,
    Job,
    JobExit,
    Phase,
    Retries,
    State,
    StopCause,
    Task,
    Verdict,
)
from pai_backend.model.spec import JobSpec, TaskRole
from pai_backend.model.text import Text

ALWAYS: Final = -2
UNLIMITED: Final = -1

AT_ONCE: Final = 3
"""So many charged retries follow without a pause: a flaky start should not cost the user time."""

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=300)
"""Pauses after lost tasks and after many failures: doubling. A lost node needs time to come back."""

FIRST_CONFLICT_PAUSE, LONGEST_CONFLICT_PAUSE = timedelta(seconds=60), timedelta(seconds=900)
"""Pauses after conflicts over resources: doubling. Source: OpenPAI's back-off, 60 s to 900 s."""

REFUSED: Final = "refused"
"""Why a task has ended that its node did not take. Such a node is remembered, and what it refused goes elsewhere."""

LONG_RUN: Final = timedelta(minutes=10)
"""What ran for so long is not caught in a quick loop: its pauses start over. Source: Kubernetes' container back-off."""

RESTARTED: Final = Text("restarted on request")
"""Why a job that its user restarted has another attempt."""


def wants_retry(job: Job, verdict: Verdict) -> bool:
    """Whether the job is to run again after this verdict."""
    if job.restarting:
        return job.desired is Desired.START
    if verdict.outcome is State.STOPPED:
        return False
    kind = verdict.kind if verdict.outcome is State.FAILED else ExitKind.SUCCESS
    return _again(job.spec.retry_count, kind, job.retries)


def runs_again_alone(job: Job, task: Task) -> bool:
    """Whether this task, which is over, is run again without the rest of its job."""
    if job.spec.scheduling.gang_allocation or task.exit is None or task.exit.reason == "stopped":
        return False
    return _again(job.spec.role(task.role).task_retry_count, explain(task.exit).kind, task.retries)


def charge(retries: Retries, causer: Causer, kind: ExitKind) -> Retries:
    """The counters after one more run, counted under who caused it.

    Of what resources cause, only preemption is transient without being a conflict: it is counted by itself.
    """
    under = "preempted" if causer is Causer.RESOURCE and kind is ExitKind.TRANSIENT else causer.value
    return retries.model_copy(update={under: getattr(retries, under) + 1, "free": retries.free + kind.free})


def back_off(
    retries: Retries, kind: ExitKind, causer: Causer, ran_for: timedelta, *, refused: bool = False
) -> timedelta:
    """How long to wait before the next run, by the class of what ended and the counters before it is charged.

    ``refused``: by a node that is remembered, so that a few more are tried at once. Whatever many nodes refuse is
    tried after pauses: it may be the task's own fault.
    """
    again: int = 0 if ran_for >= LONG_RUN else getattr(retries, causer.value)
    if kind is ExitKind.TRANSIENT_CONFLICT:
        if refused and again < AT_ONCE:
            return timedelta(0)
        return _doubled(FIRST_CONFLICT_PAUSE, again - AT_ONCE * refused, LONGEST_CONFLICT_PAUSE)
    if kind is ExitKind.TRANSIENT:
        # What was preempted waits for its place in the queue anyway.
        return timedelta(0) if causer is Causer.RESOURCE else _doubled(FIRST_PAUSE, again, LONGEST_PAUSE)
    return timedelta(0) if again < AT_ONCE else _doubled(FIRST_PAUSE, again - AT_ONCE, LONGEST_PAUSE)


def ran_for(tasks: tuple[Task, ...]) -> timedelta:
    """How long these tasks ran, from the first start to the last end; time they were kept does not count."""
    started = [task.started_at for task in tasks if task.started_at is not None]
    ended = [task.ended_at for task in tasks if task.ended_at is not None]
    return max(ended) - min(started) if started and ended else timedelta(0)


def _again(limit: int, kind: ExitKind, retries: Retries) -> bool:
    if limit == ALWAYS:
        return True
    if kind is ExitKind.SUCCESS or kind is ExitKind.PERMANENT:
        return False
    return kind.free or limit == UNLIMITED or retries.charged < limit


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    doubled: timedelta = first * 2 ** min(times, 16)
    return min(doubled, longest)


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
        return _succeeded(Text("{number} tasks have completed", number=len(done)))
    return _succeeded(Text("all tasks are done")) if len(done) == len(job.tasks) else None


def stopped(reason: str, cause: StopCause) -> Verdict:
    """The verdict of a stop request."""
    exit_ = JobExit(status=STOPPED_STATUS, message=reason or Text("stopped on request"), cause=cause)
    return Verdict(outcome=State.STOPPED, exit=exit_)


def _by_role(role: TaskRole, done: list[Task]) -> Verdict | None:
    failed = [task for task in done if task.exit is not None and task.exit.status != 0]
    rule = role.completion
    if rule.min_failed is not None and 1 <= rule.min_failed <= len(failed):
        in_time = sorted(failed, key=_ended_at)
        return _failed(in_time[rule.min_failed - 1])
    succeeded = len(done) - len(failed)
    if rule.min_succeeded is not None and 1 <= rule.min_succeeded <= succeeded:
        return _succeeded(Text("{number} of role {role} succeeded", number=succeeded, role=role.name), role.name)
    return None


def _ended_at(task: Task) -> datetime:
    if task.exit is None:
        raise AssertionError("a task that is over has an exit")
    return task.exit.at


def _succeeded(message: Text, role: str | None = None) -> Verdict:
    return Verdict(outcome=State.SUCCEEDED, exit=JobExit(status=0, message=message, role=role))


def _failed(task: Task) -> Verdict:
    if task.exit is None:
        raise AssertionError("a task that is over has an exit")
    meaning = explain(task.exit)
    exit_ = JobExit(
        status=task.exit.status,
        message=Text("task {task}: {message}", task=task.name, message=task.exit.message),
        remedy=meaning.remedy,
        role=task.role,
        index=task.index,
    )
    return Verdict(outcome=State.FAILED, causer=meaning.causer, kind=meaning.kind, exit=exit_)


def fresh_tasks(uid: JobUid, spec: JobSpec, attempt: int) -> tuple[Task, ...]:
    """All tasks of a job whose slots have each run ``attempt`` times, queued, in document order."""
    return tuple(
        Task(
            uid=task_uid(uid, number, index, attempt),
            role=role.name,
            index=index,
            attempt=attempt,
            job_attempt=attempt,
        )
        for number, role in enumerate(spec.task_roles)
        for index in range(role.instances)
    )


def run_tasks_again(job: Job, now: datetime) -> Job:
    """Queue what is to run again alone, once the engine has forgotten its last run; and end pauses that are over."""
    if job.verdict is not None or job.desired is Desired.STOP or job.spec.scheduling.gang_allocation:
        return job
    numbers = {role.name: number for number, role in enumerate(job.spec.task_roles)}
    tasks = tuple(_resumed(_rerun(job, task, numbers, now), now) for task in job.tasks)
    return job.model_copy(update={"tasks": tasks})


def run_job_again(job: Job, verdict: Verdict, now: datetime) -> Job:
    """The job's next attempt, its tasks queued; the verdict on the last one is charged.

    A job that its user restarted has all its retries before it again, and queues behind the jobs that wait.
    """
    numbers = {role.name: number for number, role in enumerate(job.spec.task_roles)}
    tasks = tuple(_next_run(job, task, numbers[task.role], job.attempt + 1) for task in job.tasks)
    again: dict[str, object] = {"attempt": job.attempt + 1, "tasks": tasks, "verdict": None}
    if job.restarting:
        fresh = {"retries": Retries(), "restarting": False, "backoff_until": None}
        return job.model_copy(update={**again, **fresh, "why": RESTARTED})
    failed = verdict.outcome is State.FAILED
    kind = verdict.kind if failed else ExitKind.SUCCESS
    causer = verdict.causer if failed else Causer.USER
    refused = any(task.exit is not None and task.exit.reason == REFUSED for task in job.tasks)
    pause = back_off(job.retries, kind, causer, ran_for(job.tasks), refused=refused)
    return job.model_copy(
        update={
            **again,
            "retries": charge(job.retries, causer, kind),
            "backoff_until": now + pause if pause else None,
            "why": Text("retrying after: {reason}", reason=verdict.exit.message),
        }
    )


def _rerun(job: Job, task: Task, numbers: dict[str, int], now: datetime) -> Task:
    if task.phase is not Phase.ENDED or not task.forgotten or task.exit is None or not runs_again_alone(job, task):
        return task
    meaning = explain(task.exit)
    refused = task.exit.reason == REFUSED
    pause = back_off(task.retries, meaning.kind, meaning.causer, ran_for((task,)), refused=refused)
    fresh = _next_run(job, task, numbers[task.role], job.attempt)
    return fresh.model_copy(
        update={
            "retries": charge(task.retries, meaning.causer, meaning.kind),
            "phase": Phase.BACKING_OFF if pause else Phase.QUEUED,
            "backoff_until": now + pause if pause else None,
        }
    )


def _resumed(task: Task, now: datetime) -> Task:
    if task.phase is not Phase.BACKING_OFF or task.backoff_until is None or now < task.backoff_until:
        return task
    return task.model_copy(update={"phase": advance(task.phase, Happening.DUE), "backoff_until": None})


def _next_run(job: Job, task: Task, role_number: int, job_attempt: int) -> Task:
    run = task.attempt + 1
    return Task(
        uid=task_uid(job.uid, role_number, task.index, run),
        role=task.role,
        index=task.index,
        attempt=run,
        job_attempt=job_attempt,
        retries=Retries(),
    )
