"""The attempts of a job, earlier ones too, put together from its tasks and its history."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.api import present
from pai_backend.api.context import ApiContext, PublicAddress
from pai_backend.api.large_texts import in_turn
from pai_backend.api.openpai import jobs as openpai
from pai_backend.api.openpai.wire import JobAttempt, JobAttempts, OpenPaiDetail, TaskWithRuns
from pai_backend.api.services.jobs import JobService
from pai_backend.api.wire import AttemptList, AttemptWire
from pai_backend.auth.users import User
from pai_backend.lifecycle.retry import RESTARTED
from pai_backend.model.errors import NoSuchTask
from pai_backend.model.job import Event, Job, Task
from pai_backend.model.text import Text
from pai_backend.model.wording import restored


class AttemptService:
    """OpenPAI's views of a job: its attempts, and the runs of its tasks in each."""

    def __init__(self, ctx: ApiContext) -> None:
        self._ctx = ctx
        self._jobs = JobService(ctx)

    async def detail(self, user: User, name: str, *, number: int | None = None, version: int = 2) -> OpenPaiDetail:
        """Everything about one attempt, the latest by default. Raises NoSuchJob, NoSuchTask."""
        attempt = await self._attempt(user, name, number)
        return openpai.detail(attempt, version, self._ctx.clock(), self._ctx.site, self._ctx.gateway())

    async def all(self, user: User, name: str) -> JobAttempts:
        """The retry history, the latest attempt first. Raises NoSuchJob."""
        job = await self._jobs.find(user, name)
        tasks, retries = await self._kept(job)
        numbers = range(job.attempt, -1, -1)
        gateway = self._ctx.gateway()
        return JobAttempts(
            tuple(openpai.job_attempt(attempt_of(job, number, tasks, retries), gateway) for number in numbers)
        )

    async def ours(self, user: User, name: str) -> AttemptList:
        """Every attempt with every run of its tasks, the latest first. Raises NoSuchJob."""
        job = await self._jobs.find(user, name)
        tasks, retries = await self._kept(job)
        gateway = self._ctx.gateway()

        def made() -> AttemptList:
            attempts = (attempt_of(job, number, tasks, retries) for number in range(job.attempt, -1, -1))
            return AttemptList(data=tuple(_shown(attempt, gateway) for attempt in attempts))

        return await in_turn(made)

    async def one(self, user: User, name: str, number: int) -> JobAttempt:
        """One attempt of the retry history. Raises NoSuchJob, NoSuchTask."""
        return openpai.job_attempt(await self._attempt(user, name, number), self._ctx.gateway())

    async def task(self, user: User, name: str, number: int, role: str, index: int) -> TaskWithRuns:
        """A task with all its runs in an attempt. Raises NoSuchJob, NoSuchTask."""
        attempt = await self._attempt(user, name, number)
        if (role, index) not in attempt.runs:
            known = ", ".join(f"{role.name} 0 to {role.instances - 1}" for role in attempt.job.spec.task_roles)
            raise NoSuchTask(
                Text("The job {id} has no task {role}-{index}.", id=attempt.job.id, role=role, index=index),
                hint=Text("It has: {known}.", known=known),
            )
        return openpai.task_with_runs(attempt, role, index, self._ctx.gateway())

    async def _attempt(self, user: User, name: str, number: int | None) -> openpai.Attempt:
        job = await self._jobs.find(user, name)
        wanted = job.attempt if number is None else number
        if wanted > job.attempt:
            raise NoSuchTask(
                Text("The job {id} has no attempt {wanted}.", id=job.id, wanted=wanted),
                hint=Text("It has 0 to {attempt}.", attempt=job.attempt),
            )
        return attempt_of(job, wanted, *await self._kept(job))

    async def _kept(self, job: Job) -> tuple[list[Task], list[Event]]:
        """All runs of all tasks, oldest first, and the retries of the job; nothing is read when there were none."""
        if job.attempt == 0 and all(task.attempt == 0 for task in job.tasks):
            return list(job.tasks), []
        bodies = await self._ctx.store.jobs.past_tasks(job.uid)
        tasks = await in_turn(lambda: [Task.model_validate(body) for body in bodies])  # there may be thousands
        # A retry more or less while the two are read does no harm: the job's own attempts bound what is shown.
        return tasks, await self._ctx.store.events.of_job(job.uid, limit=job.attempt + 1, type_="job.retry")


def _shown(attempt: openpai.Attempt, gateway: PublicAddress | None) -> AttemptWire:
    return AttemptWire(
        number=attempt.number,
        created_time=attempt.created,
        completed_time=attempt.completed,
        retry_reason=attempt.retry_reason,
        runs=tuple(present.task_wire(attempt.job, run, gateway) for runs in attempt.runs.values() for run in runs),
    )


def _reason(retry: Event) -> str:
    return restored(str(retry.payload.get("reason", "")), retry.payload.get("reason_wording"))


def attempt_of(job: Job, number: int, tasks: Sequence[Task], retries: Sequence[Event]) -> openpai.Attempt:
    """Attempt ``number`` of the job; ``tasks`` are all runs, oldest first, ``retries`` its ``job.retry`` events."""
    begun = next((event for event in retries if event.payload.get("attempt") == number), None)
    ended = next((event for event in retries if event.payload.get("attempt") == number + 1), None)
    runs: dict[tuple[str, int], list[Task]] = {
        (role.name, index): [] for role in job.spec.task_roles for index in range(role.instances)
    }
    for task in tasks:
        if task.job_attempt == number:
            runs[task.role, task.index].append(task)
    latest = number == job.attempt
    completed = job.completed_at if latest else ended.at if ended is not None else None
    if ended is not None and ended.payload.get("reason") == RESTARTED:  # it may have ended long before that
        ends = [task.ended_at for task in tasks if task.job_attempt == number and task.ended_at is not None]
        completed = max(ends, default=completed)
    return openpai.Attempt(
        job=job,
        number=number,
        tasks=tuple(each[-1] for each in runs.values() if each),
        runs={slot: tuple(each) for slot, each in runs.items() if each},
        created=begun.at if begun is not None else job.submitted_at,
        completed=completed,
        retry_reason=_reason(ended) if ended is not None and not latest else "",
    )
