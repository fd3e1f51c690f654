"""Wrong state machines, each breaking one law, that the property tests must reject."""

from __future__ import annotations

from datetime import datetime

from pai_backend.lifecycle.effects import Effect
from pai_backend.lifecycle.events import JobEvent, TaskForgotten
from pai_backend.lifecycle.step import step
from pai_backend.model.job import Desired, Job, Phase, State
from pai_backend.model.spec import JobSpec

After = tuple[Job, tuple[Effect, ...]]


def forgets_to_clean_up(job: Job, event: JobEvent, now: datetime) -> After:
    """Marks ended tasks as forgotten without having asked the engine."""
    after, effects = step(job, event, now)
    tasks = tuple(t.model_copy(update={"forgotten": True}) if t.exit else t for t in after.tasks)
    return after.model_copy(update={"tasks": tasks}), effects


def does_not_count_retries(job: Job, event: JobEvent, now: datetime) -> After:
    """Runs again without charging anyone."""
    after, effects = step(job, event, now)
    return after.model_copy(update={"retries": job.retries}), effects


def charges_what_is_free(job: Job, event: JobEvent, now: datetime) -> After:
    """Lets the user pay for lost nodes."""
    after, effects = step(job, event, now)
    retries = after.retries.model_copy(update={"free": 0})
    return after.model_copy(update={"retries": retries}), effects


def never_gives_up(job: Job, event: JobEvent, now: datetime) -> After:
    """Runs again whatever the document and the class of the failure say."""
    after, effects = step(job.model_copy(update={"spec": _with_retries(job, -2)}), event, now)
    return after.model_copy(update={"spec": job.spec}), effects


def allows_one_more(job: Job, event: JobEvent, now: datetime) -> After:
    """Counts retries from minus one."""
    limit = job.spec.retry_count
    after, effects = step(
        job.model_copy(update={"spec": _with_retries(job, limit + 1 if limit >= 0 else limit)}), event, now
    )
    return after.model_copy(update={"spec": job.spec}), effects


def _with_retries(job: Job, limit: int) -> JobSpec:
    return job.spec.model_copy(update={"retry_count": limit})


def ends_too_early(job: Job, event: JobEvent, now: datetime) -> After:
    """Calls the job over as soon as its verdict is known."""
    after, effects = step(job, event, now)
    return (after.model_copy(update={"state": State.FAILED}) if after.verdict else after), effects


def ignores_stop(job: Job, event: JobEvent, now: datetime) -> After:
    """Does not look at what is desired."""
    after, effects = step(job.model_copy(update={"desired": Desired.START}), event, now)
    return after.model_copy(update={"desired": job.desired}), effects


def loses_effects(job: Job, event: JobEvent, now: datetime) -> After:
    """Keeps what is to be done to itself."""
    return step(job, event, now)[0], ()


def revives_final_jobs(job: Job, event: JobEvent, now: datetime) -> After:
    """Lets news reach a job that is over."""
    if job.state.final and not isinstance(event, TaskForgotten):
        return job.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING}), ()
    return step(job, event, now)


def lets_go_silently(job: Job, event: JobEvent, now: datetime) -> After:
    """Takes the kept tasks away whenever anything happens."""
    tasks = tuple(t.model_copy(update={"phase": Phase.ENDED}) if t.phase is Phase.KEPT else t for t in job.tasks)
    return step(job.model_copy(update={"tasks": tasks}), event, now)


def uses_a_run_twice(job: Job, event: JobEvent, now: datetime) -> After:
    """Gives the next run of a task the uid of the last one."""
    after, effects = step(job, event, now)
    old = {(t.role, t.index): t for t in job.tasks}
    tasks = tuple(t.model_copy(update={"uid": old[t.role, t.index].uid}) for t in after.tasks)
    return after.model_copy(update={"tasks": tasks}), effects


def drops_what_failed(job: Job, event: JobEvent, now: datetime) -> After:
    """Goes on without tasks that failed."""
    after, effects = step(job, event, now)
    left = tuple(t for t in after.tasks if t.state is not State.FAILED) or after.tasks
    return after.model_copy(update={"tasks": left}), effects


def runs_gangs_in_parts(job: Job, event: JobEvent, now: datetime) -> After:
    """Takes every job for an incremental one."""
    loose = job.spec.scheduling.model_copy(update={"gang_allocation": False})
    after, effects = step(
        job.model_copy(update={"spec": job.spec.model_copy(update={"scheduling": loose})}), event, now
    )
    return after.model_copy(update={"spec": job.spec}), effects


ALL = [
    forgets_to_clean_up,
    does_not_count_retries,
    charges_what_is_free,
    never_gives_up,
    allows_one_more,
    ends_too_early,
    ignores_stop,
    loses_effects,
    revives_final_jobs,
    lets_go_silently,
    uses_a_run_twice,
    drops_what_failed,
    runs_gangs_in_parts,
]
