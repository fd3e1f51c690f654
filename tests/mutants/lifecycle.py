"""Wrong state machines, each breaking one law, that the property tests must reject."""

from __future__ import annotations

from datetime import datetime

from pai_backend.lifecycle.effects import Effect
from pai_backend.lifecycle.events import JobEvent, TaskForgotten
from pai_backend.lifecycle.step import step
from pai_backend.model.job import Desired, Job, Phase, State


def forgets_to_clean_up(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Marks ended tasks as forgotten without having asked the engine."""
    after, effects = step(job, event, now)
    tasks = tuple(t.model_copy(update={"forgotten": True}) if t.exit else t for t in after.tasks)
    return after.model_copy(update={"tasks": tasks}), effects


def does_not_count_retries(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Runs again without charging anyone."""
    after, effects = step(job, event, now)
    return after.model_copy(update={"retries": job.retries}), effects


def ends_too_early(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Calls the job over as soon as its verdict is known."""
    after, effects = step(job, event, now)
    return (after.model_copy(update={"state": State.FAILED}) if after.verdict else after), effects


def ignores_stop(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Does not look at what is desired."""
    after, effects = step(job.model_copy(update={"desired": Desired.START}), event, now)
    return after.model_copy(update={"desired": job.desired}), effects


def loses_effects(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Keeps what is to be done to itself."""
    return step(job, event, now)[0], ()


def revives_final_jobs(job: Job, event: JobEvent, now: datetime) -> tuple[Job, tuple[Effect, ...]]:
    """Lets news reach a job that is over."""
    if job.state.final and not isinstance(event, TaskForgotten):
        return job.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING}), ()
    return step(job, event, now)


ALL = [
    forgets_to_clean_up,
    does_not_count_retries,
    ends_too_early,
    ignores_stop,
    loses_effects,
    revives_final_jobs,
]
