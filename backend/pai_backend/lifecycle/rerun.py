"""The next run: of one task of an incremental job, or of all tasks of a job.

``Task.attempt`` counts the runs of a slot and is never reused, whatever made it run again, because the task uid is
made from it; ``Task.job_attempt`` says which attempt of the job a run belongs to.
"""

from __future__ import annotations

from datetime import datetime

from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.retry import back_off, charge, ran_for, runs_again_alone
from pai_backend.lifecycle.table import Happening, advance
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Causer, Desired, ExitKind, Job, Phase, Retries, State, Task, Verdict
from pai_backend.model.spec import JobSpec


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
    tasks = tuple(_resumed(_again(job, task, numbers, now), now) for task in job.tasks)
    return job.model_copy(update={"tasks": tasks})


def run_job_again(job: Job, verdict: Verdict, now: datetime) -> Job:
    """The job's next attempt, its tasks queued; the verdict on the last one is charged."""
    failed = verdict.outcome is State.FAILED
    kind = verdict.kind if failed else ExitKind.SUCCESS
    causer = verdict.causer if failed else Causer.USER
    pause = back_off(job.retries, kind, causer, ran_for(job.tasks))
    numbers = {role.name: number for number, role in enumerate(job.spec.task_roles)}
    tasks = tuple(_next_run(job, task, numbers[task.role], job.attempt + 1) for task in job.tasks)
    return job.model_copy(
        update={
            "attempt": job.attempt + 1,
            "retries": charge(job.retries, causer, kind),
            "tasks": tasks,
            "verdict": None,
            "backoff_until": now + pause if pause else None,
            "why": f"retrying after: {verdict.exit.message}",
        }
    )


def _again(job: Job, task: Task, numbers: dict[str, int], now: datetime) -> Task:
    if task.phase is not Phase.ENDED or not task.forgotten or task.exit is None or not runs_again_alone(job, task):
        return task
    meaning = explain(task.exit)
    pause = back_off(task.retries, meaning.kind, meaning.causer, ran_for((task,)))
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
