"""The state machine of a job: ``step(job, event, now) -> (job, effects)``.

Rules of this file: input is never changed; ``now`` is the only time; a task's phase comes from
``table.advance``; the job's own state and phase are derived from its tasks, its verdict and what is
desired of it, in :func:`_derive`. Effects returned are those that the step opened; all that are open
after a crash are ``open_effects(job)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pai_backend.lifecycle.completion import decide, stopped
from pai_backend.lifecycle.effects import Effect, open_effects
from pai_backend.lifecycle.events import (
    JobEvent,
    Look,
    Placed,
    TaskExited,
    TaskForgotten,
    TaskPulling,
    TaskRunning,
    Waiting,
)
from pai_backend.lifecycle.retry import back_off, charge, wants_retry
from pai_backend.lifecycle.table import Happening, IllegalTransition, advance
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.job import Desired, Job, Phase, State, Task, TaskExit
from pai_backend.model.node import Placement
from pai_backend.model.spec import JobSpec


def fresh_tasks(uid: JobUid, spec: JobSpec, attempt: int) -> tuple[Task, ...]:
    """All tasks of one attempt, queued, in document order."""
    return tuple(
        Task(uid=task_uid(uid, number, index, attempt), role=role.name, index=index, attempt=attempt)
        for number, role in enumerate(spec.task_roles)
        for index in range(role.instances)
    )


def step(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """The job after ``event`` and what is newly to be done for it.

    News about tasks of earlier attempts changes nothing. Raises IllegalTransition for what cannot happen.
    """
    if job.state.final and not isinstance(event, TaskForgotten):
        return job, ()
    after = _conclude(_judge(_apply(job, event, now), now), now)
    after = _derive(after, now)
    already = set(open_effects(job))
    return after, tuple(effect for effect in open_effects(after) if effect not in already)


def placeable(job: Job, now: datetime) -> bool:
    """Whether the job waits for a place at this time."""
    if job.state.final or job.verdict is not None or job.desired is Desired.STOP:
        return False
    if job.backoff_until is not None and now < job.backoff_until:
        return False
    return all(task.phase is Phase.QUEUED for task in job.tasks)


def _apply(job: Job, event: JobEvent, now: datetime) -> Job:
    match event:
        case Look():
            return job
        case Waiting(why=why):
            return job.model_copy(update={"why": why})
        case Placed(placements=placements):
            return _place(job, placements)
        case TaskPulling(uid=uid):
            return _with_task(job, uid, Happening.PULLING, {})
        case TaskRunning(uid=uid, since=since):
            task = job.task(uid)
            started = task.started_at if task is not None and task.started_at is not None else since
            return _with_task(job, uid, Happening.RUNNING, {"started_at": started})
        case TaskExited(uid=uid, exit=exit_):
            task = job.task(uid)
            if task is not None and task.phase is Phase.ENDED:
                return job
            return _with_task(job, uid, Happening.EXITED, {"exit": exit_, "ended_at": exit_.at})
        case TaskForgotten(uid=uid):
            return _with_task(job, uid, Happening.FORGOTTEN, {"forgotten": True})


def _place(job: Job, placements: Mapping[TaskUid, Placement]) -> Job:
    tasks = []
    for task in job.tasks:
        if task.uid not in placements:
            raise IllegalTransition(f"{task.uid} was left out of its gang's placement")
        phase = advance(task.phase, Happening.PLACED)
        tasks.append(task.model_copy(update={"phase": phase, "placement": placements[task.uid]}))
    return job.model_copy(update={"tasks": tuple(tasks), "why": "", "backoff_until": None})


def _with_task(job: Job, uid: str, happening: Happening, changes: dict[str, object]) -> Job:
    """The job with one task moved on; unchanged when the task is not of the current attempt."""
    tasks = []
    for task in job.tasks:
        if task.uid == uid:
            task = task.model_copy(update={"phase": advance(task.phase, happening), **changes})
        tasks.append(task)
    return job.model_copy(update={"tasks": tuple(tasks)})


def _judge(job: Job, now: datetime) -> Job:
    """Decide the attempt if it can be decided, and ask what still lives to stop."""
    verdict = job.verdict
    if job.desired is Desired.STOP and not job.state.final:
        if verdict is None or verdict.outcome is not State.STOPPED:
            verdict = stopped(job.stop_reason)
    elif verdict is None:
        verdict = decide(job)
    if verdict is None or job.state.final:
        return job
    tasks = tuple(_ask_to_stop(task, now) for task in job.tasks)
    return job.model_copy(update={"verdict": verdict, "tasks": tasks, "why": ""})


def _ask_to_stop(task: Task, now: datetime) -> Task:
    phase = advance(task.phase, Happening.STOP)
    if phase is task.phase:
        return task
    if phase is Phase.STOPPING:
        return task.model_copy(update={"phase": phase})
    never_started = TaskExit(code=None, reason="stopped", message="stopped before it was started", at=now)
    return task.model_copy(update={"phase": phase, "exit": never_started, "ended_at": now, "forgotten": True})


def _conclude(job: Job, now: datetime) -> Job:
    """Carry the verdict out once no task lives: the job is over, or its next attempt begins.

    The next attempt waits until the engine has forgotten the last one, so that a node is never asked to
    hold both.
    """
    verdict = job.verdict
    if verdict is None or job.state.final or any(task.phase is not Phase.ENDED for task in job.tasks):
        return job
    if not wants_retry(job, verdict):
        return job.model_copy(update={"state": verdict.outcome, "exit": verdict.exit, "completed_at": now})
    if not all(task.forgotten for task in job.tasks):
        return job
    wait = back_off(job.retries, verdict)
    return job.model_copy(
        update={
            "attempt": job.attempt + 1,
            "retries": charge(job.retries, verdict),
            "tasks": fresh_tasks(job.uid, job.spec, job.attempt + 1),
            "verdict": None,
            "backoff_until": now + wait if wait else None,
            "why": f"retrying after: {verdict.exit.message}",
        }
    )


def _derive(job: Job, now: datetime) -> Job:
    """State and phase as users see them, of the tasks and of the job; nothing else sets them."""
    tasks = tuple(_task_state(task) for task in job.tasks)
    state, phase = _job_state(job, tasks, now)
    launched = job.launched_at
    if launched is None:
        launched = min((task.started_at for task in tasks if task.started_at), default=None)
    return job.model_copy(update={"tasks": tasks, "state": state, "phase": phase, "launched_at": launched})


def _task_state(task: Task) -> Task:
    match task.phase:
        case Phase.RUNNING:
            state = State.RUNNING
        case Phase.STOPPING:
            state = State.STOPPING
        case Phase.ENDED:
            state = _ended_state(task)
        case _:
            state = State.WAITING
    return task if state is task.state else task.model_copy(update={"state": state})


def _ended_state(task: Task) -> State:
    if task.exit is None:
        raise IllegalTransition(f"{task.uid} ended without an exit")
    if task.exit.status == 0:
        return State.SUCCEEDED
    return State.STOPPED if task.exit.reason == "stopped" else State.FAILED


def _job_state(job: Job, tasks: tuple[Task, ...], now: datetime) -> tuple[State, Phase]:
    if job.state.final:
        return job.state, Phase.ENDED
    if job.verdict is not None:
        asked = job.desired is Desired.STOP
        return (State.STOPPING if asked else State.RUNNING), Phase.STOPPING
    phases = {task.phase for task in tasks}
    if Phase.RUNNING in phases or Phase.ENDED in phases:
        settled = phases <= {Phase.RUNNING, Phase.ENDED}
        return State.RUNNING, Phase.RUNNING if settled else Phase.STARTING
    if Phase.PULLING in phases:
        return State.WAITING, Phase.PULLING
    if Phase.STARTING in phases:
        return State.WAITING, Phase.STARTING
    waits = job.backoff_until is not None and now < job.backoff_until
    return State.WAITING, Phase.BACKING_OFF if waits else Phase.QUEUED


def next_wake(job: Job) -> datetime | None:
    """When the job must be looked at again though nothing happens, if ever."""
    return None if job.state.final else job.backoff_until
