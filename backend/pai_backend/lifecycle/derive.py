"""State and phase as users see them, of tasks and jobs, and keeping a failed task of a debug job.

State and phase are derived from what the table and the verdict say. A kept task has failed: its state is FAILED, and
its phase says that it is kept. Its job goes on as RUNNING in the phase *kept*, because it is not over. An incremental
job is as far as its most advanced task.

A task is kept, so that its user can look around in it, when its own command failed and nothing has asked it to stop. It
has failed all the same: completion counts it at once, but what follows (a retry, the end of the job) waits until it is
released by its user, by the clock, or by a stop of the job. Source: OpenPAI v1 jobEnvs.isDebug, which kept the
container for a week and showed the job as running meanwhile; users found that confusing, hence a phase of its own.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pai_backend.lifecycle.exits import explain
from pai_backend.lifecycle.table import Happening, IllegalTransition, advance
from pai_backend.model.job import Desired, Job, Phase, State, Task, TaskExit
from pai_backend.model.text import Text, listed

KEEP: Final = timedelta(seconds=604_800)
"""How long a task is kept unless configured otherwise. Source: OpenPAI v1, a week."""


def is_kept(job: Job, task: Task, exit_: TaskExit, keep: timedelta) -> bool:
    """Whether a task that ends so is kept. What the platform took away has nothing left that could be entered."""
    if not job.spec.debug or not keep or job.desired is Desired.STOP or task.phase is not Phase.RUNNING:
        return False
    return exit_.status != 0 and exit_.reason != "stopped" and not explain(exit_).kind.free


def let_go(job: Job, now: datetime) -> Job:
    """Release the kept tasks that their user has released, and those whose time is over."""
    if not job.kept:
        return job.model_copy(update={"released": ()}) if job.released else job
    tasks = tuple(_let_go(job, task, now) for task in job.tasks)
    return job.model_copy(update={"tasks": tasks, "released": ()})


def released(task: Task, by: str) -> Task:
    """A kept task after its release; its exit stays what it was."""
    return task.model_copy(update={"phase": advance(task.phase, Happening.RELEASED), "released_by": by})


def kept_sentence(job: Job) -> str:
    """Why the job is not over though nothing of it runs; empty when nothing is kept."""
    if not job.kept:
        return ""
    until = min(task.kept_until for task in job.kept if task.kept_until is not None)
    return Text(
        "task {tasks} failed and is kept for debugging until {until} UTC; release it with `pai release`",
        tasks=listed([task.name for task in job.kept], 1),
        until=f"{until:%Y-%m-%d %H:%M}",
    )


def _let_go(job: Job, task: Task, now: datetime) -> Task:
    if task.phase is not Phase.KEPT:
        return task
    if task.uid in job.released:
        return released(task, "user")
    if task.kept_until is not None and now >= task.kept_until:
        return released(task, "clock")
    return task


_STATE_OF: Final = {Phase.RUNNING: State.RUNNING, Phase.STOPPING: State.STOPPING}
"""The state of a task that is not over; all others wait."""

_ADVANCED_FIRST: Final = (
    Phase.RUNNING,
    Phase.STARTING,
    Phase.PULLING,
    Phase.KEPT,
    Phase.QUEUED,
    Phase.BACKING_OFF,
)


def derive(job: Job, now: datetime) -> Job:
    """The job with state and phase of itself and its tasks set; nothing else sets them."""
    tasks = tuple(_task_state(task) for task in job.tasks)
    state, phase = _job_state(job, tasks, now)
    launched = job.launched_at
    if launched is None and not job.restarting:
        launched = min((task.started_at for task in tasks if task.started_at), default=None)
    after = job.model_copy(update={"tasks": tasks, "state": state, "phase": phase, "launched_at": launched})
    why = _why(job, after)
    return after if why == after.why else after.model_copy(update={"why": why})


def _why(before: Job, job: Job) -> str:
    """The reason to wait: of a kept job that it is kept; empty once everything runs."""
    if job.phase is Phase.KEPT:
        return kept_sentence(job)
    all_run = all(task.phase is Phase.RUNNING or task.is_over for task in job.tasks)
    if before.phase is Phase.KEPT or (job.phase is Phase.RUNNING and all_run):
        return ""
    return job.why


def next_wake(job: Job) -> datetime | None:
    """When the job must be looked at again though nothing happens, if ever: a pause or a time of keeping ends."""
    if job.state.final:
        return None
    times = [task.kept_until for task in job.kept]
    times += [task.backoff_until for task in job.tasks if task.phase is Phase.BACKING_OFF]
    times += [job.backoff_until] if job.phase is Phase.BACKING_OFF else []
    return min((at for at in times if at is not None), default=None)


def _task_state(task: Task) -> Task:
    state = _state_of_exit(task) if task.is_over else _STATE_OF.get(task.phase, State.WAITING)
    return task if state is task.state else task.model_copy(update={"state": state})


def _state_of_exit(task: Task) -> State:
    if task.exit is None:
        raise IllegalTransition(f"{task.uid} ended without an exit")
    if task.exit.status == 0:
        return State.SUCCEEDED
    return State.STOPPED if task.exit.reason == "stopped" else State.FAILED


def _job_state(job: Job, tasks: tuple[Task, ...], now: datetime) -> tuple[State, Phase]:
    if job.state.final:
        return job.state, Phase.ENDED
    phases = {task.phase for task in tasks}
    if job.restarting and job.desired is Desired.START:
        return State.WAITING, Phase.QUEUED
    if job.verdict is not None:
        only_kept = Phase.KEPT in phases and phases <= {Phase.KEPT, Phase.ENDED}
        state = State.STOPPING if job.desired is Desired.STOP else State.RUNNING
        return state, Phase.KEPT if only_kept else Phase.STOPPING
    if not job.spec.scheduling.gang_allocation:
        return _incremental_state(job, tasks, now)
    if phases & {Phase.RUNNING, Phase.KEPT, Phase.ENDED}:
        settled = phases <= {Phase.RUNNING, Phase.KEPT, Phase.ENDED}
        return State.RUNNING, Phase.RUNNING if settled else Phase.STARTING
    return State.WAITING, _before_running(job, phases, now)


def _incremental_state(job: Job, tasks: tuple[Task, ...], now: datetime) -> tuple[State, Phase]:
    phases = {task.phase for task in tasks}
    has_begun = any(task.phase is Phase.RUNNING or task.is_over or task.retries.total for task in tasks)
    if not has_begun:
        return State.WAITING, _before_running(job, phases, now)
    return State.RUNNING, next((phase for phase in _ADVANCED_FIRST if phase in phases), Phase.QUEUED)


def _before_running(job: Job, phases: set[Phase], now: datetime) -> Phase:
    if Phase.PULLING in phases:
        return Phase.PULLING
    if Phase.STARTING in phases:
        return Phase.STARTING
    waits = job.backoff_until is not None and now < job.backoff_until
    return Phase.BACKING_OFF if waits else Phase.QUEUED
