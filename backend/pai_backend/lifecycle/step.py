"""The state machine of a job: ``step(job, event, now) -> (job, effects)``.

Rules of this file: input is never changed; ``now`` is the only time; a task's phase comes from
``table.advance``; the job's own state and phase are derived from its tasks, its verdict and what is
desired of it, in ``derive``. Effects returned are those that the step opened; all that are open
after a crash are ``open_effects(job)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from pai_backend.lifecycle.derive import KEEP, derive, is_kept, let_go, released
from pai_backend.lifecycle.effects import Effect, open_effects
from pai_backend.lifecycle.engine_words import engine_said
from pai_backend.lifecycle.events import (
    Displaced,
    JobEvent,
    Look,
    Placed,
    PredecessorEnded,
    Preempted,
    TaskDelayed,
    TaskExited,
    TaskForgotten,
    TaskGone,
    TaskPulling,
    TaskRunning,
    Unreserved,
    Waiting,
)
from pai_backend.lifecycle.exits import explained
from pai_backend.lifecycle.preempt import as_preempted, displaced, make_way
from pai_backend.lifecycle.retry import decide, run_job_again, run_tasks_again, stopped, wants_retry
from pai_backend.lifecycle.table import Happening, IllegalTransition, advance
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Desired, Job, Phase, Task, TaskExit, Verdict
from pai_backend.model.node import Placement
from pai_backend.model.text import Text


def step(job: Job, event: JobEvent, now: datetime, keep: timedelta = KEEP) -> tuple[Job, tuple[Effect, ...]]:
    """The job after ``event`` and what is newly to be done for it; see :func:`stepped`."""
    after = stepped(job, event, now, keep)
    already = set(open_effects(job))
    return after, tuple(effect for effect in open_effects(after) if effect not in already)


def stepped(job: Job, event: JobEvent, now: datetime, keep: timedelta = KEEP) -> Job:
    """The job after ``event``.

    News about earlier runs of a task changes nothing. ``keep`` is how long a failed task of a debug job is kept;
    0 keeps none. Raises IllegalTransition for what cannot happen.
    """
    if job.state.final and not isinstance(event, TaskForgotten):
        return job
    after = let_go(_apply(job, event, now, keep), now)
    after = _conclude(_judge(run_tasks_again(after, now), now), now)
    return derive(after, now)


def to_place(job: Job, now: datetime) -> tuple[Task, ...]:
    """The tasks that wait for a place at this time: all of a gang or none, any of an incremental job.

    Where an incremental job has a core that must start together, the others wait for a place once that has one.
    """
    if job.state.final or job.verdict is not None or job.desired is Desired.STOP or job.replaces is not None:
        return ()
    if job.backoff_until is not None and now < job.backoff_until:
        return ()
    queued = tuple(task for task in job.tasks if task.phase is Phase.QUEUED)
    if job.spec.scheduling.gang_allocation and len(queued) != len(job.tasks):
        return ()
    return job.core or queued


def _put_off(job: Job, seconds: int | None) -> Job:
    """The job with its turn put off, once: until it is restarted, or moved in the queue."""
    if seconds is None or job.put_off_s is not None:
        return job
    turn = (job.turn_at or job.submitted_at) + timedelta(seconds=seconds)
    return job.model_copy(update={"turn_at": turn, "put_off_s": seconds})


def _apply(job: Job, event: JobEvent, now: datetime, keep: timedelta) -> Job:
    match event:
        case Look():
            return job
        case Waiting(why=why, reserved=reserved, put_off_s=seconds):
            return _with_reserved(_put_off(job.model_copy(update={"why": why}), seconds), reserved)
        case Placed(placements=placements):
            return _place(job, placements)
        case PredecessorEnded():
            return job.model_copy(update={"replaces": None, "why": ""})
        case Preempted():
            return make_way(job, event)
        case Displaced():
            return displaced(job, event)
        case Unreserved():
            return _with_reserved(job, {})
        case TaskPulling(uid=uid):
            return _with_task(job, uid, Happening.PULLING, {})
        case TaskDelayed(uid=uid, why=why):
            return _delayed(job, uid, why)
        case TaskRunning(uid=uid, since=since):
            task = job.task(uid)
            started = task.started_at if task is not None and task.started_at is not None else since
            return _with_task(job, uid, Happening.RUNNING, {"started_at": started})
        case TaskExited(uid=uid, exit=exit_):
            return _end(job, uid, exit_, now, keep)
        case TaskGone(uid=uid):
            return _with_kept_task_gone(job, uid)
        case TaskForgotten(uid=uid):
            return _with_task(job, uid, Happening.FORGOTTEN, {"forgotten": True})


def _place(job: Job, placements: Mapping[TaskUid, Placement]) -> Job:
    known = {task.uid for task in job.tasks}
    if unknown := placements.keys() - known:
        raise IllegalTransition(f"{min(unknown)} is placed but is not a task of this job")
    if job.spec.scheduling.gang_allocation and (left := known - placements.keys()):
        raise IllegalTransition(f"{min(left)} was left out of its gang's placement")
    tasks = []
    for task in job.tasks:
        if task.uid in placements:
            phase = advance(task.phase, Happening.PLACED)
            task = task.model_copy(update={"phase": phase, "placement": placements[task.uid], "reserved": None})
        tasks.append(task)
    return job.model_copy(update={"tasks": tuple(tasks), "why": "", "backoff_until": None})


def _with_reserved(job: Job, reserved: Mapping[TaskUid, Placement] | None) -> Job:
    """The job with these places kept for its waiting tasks, and no others."""
    if reserved is None or all(task.reserved == reserved.get(task.uid) for task in job.tasks):
        return job
    tasks = tuple(
        task.model_copy(update={"reserved": reserved.get(task.uid) if task.phase is Phase.QUEUED else None})
        for task in job.tasks
    )
    return job.model_copy(update={"tasks": tasks})


def _delayed(job: Job, uid: TaskUid, why: str) -> Job:
    """The job with the reason for which a task has not begun. Late news about one that has says nothing."""
    task = job.task(uid)
    if task is None or task.phase not in (Phase.STARTING, Phase.PULLING):
        return job
    return job.model_copy(update={"why": engine_said(why)})


def _end(job: Job, uid: TaskUid, exit_: TaskExit, now: datetime, keep: timedelta) -> Job:
    """The job after the end of a task. The first word on an exit counts."""
    task = job.task(uid)
    if task is None or task.is_over:
        return job
    exit_ = explained(as_preempted(task, exit_))
    changes: dict[str, object] = {"exit": exit_, "ended_at": exit_.at}
    if is_kept(job, task, exit_, keep):
        return _with_task(job, uid, Happening.KEPT, {**changes, "kept_until": now + keep})
    return _with_task(job, uid, Happening.EXITED, changes)


def _with_kept_task_gone(job: Job, uid: TaskUid) -> Job:
    tasks = tuple(released(t, "lost") if t.uid == uid and t.phase is Phase.KEPT else t for t in job.tasks)
    return job.model_copy(update={"tasks": tasks})


def _with_task(job: Job, uid: TaskUid, happening: Happening, changes: dict[str, object]) -> Job:
    """The job with one task moved on; unchanged when the task is not one of its latest runs."""
    tasks = []
    for task in job.tasks:
        if task.uid == uid:
            task = task.model_copy(update={"phase": advance(task.phase, happening), **changes})
        tasks.append(task)
    return job.model_copy(update={"tasks": tuple(tasks)})


def _judge(job: Job, now: datetime) -> Job:
    """Decide the attempt if it can be decided, and ask what still lives to stop.

    A stop lets kept tasks go. It does not undo the verdict of a job of which nothing else is left: that has failed.
    """
    verdict, asked = job.verdict, job.desired is Desired.STOP
    if job.state.final:
        return job
    if asked and (verdict is None or not _is_settled(job, verdict)):
        verdict = stopped(job.stop_reason, job.stop_cause)
    elif verdict is None:
        verdict = decide(job)
    elif job.restarting:
        return job
    if verdict is None:
        return job
    tasks = tuple(task if task.phase is Phase.KEPT and not asked else _ask_to_stop(task, now) for task in job.tasks)
    return job.model_copy(update={"verdict": verdict, "tasks": tasks, "why": ""})


def _is_settled(job: Job, verdict: Verdict) -> bool:
    """Whether only kept tasks keep the verdict from being the job's end."""
    return all(task.is_over for task in job.tasks) and not wants_retry(job, verdict)


def _ask_to_stop(task: Task, now: datetime) -> Task:
    phase = advance(task.phase, Happening.STOP)
    if phase is task.phase:
        return task
    if task.phase is Phase.KEPT:
        return task.model_copy(update={"phase": phase, "released_by": "stop"})
    if phase is Phase.STOPPING:
        return task.model_copy(update={"phase": phase})
    never_started = TaskExit(code=None, reason="stopped", message=Text("stopped before it was started"), at=now)
    over: dict[str, object] = {"exit": never_started, "ended_at": now, "forgotten": True}
    return task.model_copy(update={"phase": phase, "backoff_until": None, "reserved": None, **over})


def _conclude(job: Job, now: datetime) -> Job:
    """Carry the verdict out once no task lives or is kept: the job is over, or its next attempt begins.

    The next attempt waits until the engine has forgotten the last one, so that a node is never asked to
    hold both.
    """
    verdict = job.verdict
    if verdict is None or job.state.final or any(task.phase is not Phase.ENDED for task in job.tasks):
        return job
    if not wants_retry(job, verdict):
        over: dict[str, object] = {"state": verdict.outcome, "exit": verdict.exit, "completed_at": now}
        return job.model_copy(update={**over, "restarting": False})
    if not all(task.forgotten for task in job.tasks):
        return job
    return run_job_again(job, verdict, now)
