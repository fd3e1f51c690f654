"""Which task and port a service alias means right now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.launch.jupyter import made_token, serves_jupyter, upstream_token
from pai_backend.launch.plan import environment
from pai_backend.model.alias import Target, resolve, split
from pai_backend.model.job import Job, State, Task
from pai_backend.model.node import Placement

FRESH_S = 0.5  # seconds; how long an answer is used again: one page load asks some hundred times
AHEAD_S = 0.25  # seconds; from then on it is looked up again while the old answer still counts: no request waits
LARGE_COMMAND = 8_192  # characters; looking for a Jupyter in more may take over 10 ms
_KEPT = 1024  # answers


class JobFinder(Protocol):
    """The part of the store that finds jobs."""

    async def by_alias(self, alias: str) -> Job | None:
        """The job of that alias."""
        ...


@dataclass(frozen=True)
class ServicePlace:
    """Where a running service is."""

    task: Task
    placement: Placement
    port: int
    token: str | None
    """What its Jupyter server asks for; None without one, or when nothing is known."""
    is_jupyter: bool = False


@dataclass(frozen=True)
class Service:
    """A service of a job. Who may see it is not asked here."""

    job: Job
    target: Target
    task: Task | None
    place: ServicePlace | None
    """None while the task does not run."""

    def running_place(self) -> ServicePlace:
        """Where the service runs. Raises Refused, with what the job is doing instead."""
        if self.place is not None:
            return self.place
        if self.job.state.final:
            raise Refused(Refusal.ENDED, job=self.job)
        if self.task is not None and self.task.state.final:
            raise Refused(Refusal.WAITING, f"Task {self.task.name} has ended ({self.task.state}).", self.job)
        raise Refused(Refusal.WAITING, job=self.job)


@dataclass(frozen=True)
class _Answer:
    asked_at: float
    service: asyncio.Future[Service]
    before: _Answer | None = None
    """The one that counts until this has come."""


def _looked_at(service: asyncio.Future[Service]) -> None:
    """Retrieve an error: the next caller of `find` gets it."""
    if not service.cancelled():
        service.exception()


class ServiceDirectory:
    """Finds services by alias; an answer is at most ``FRESH_S`` seconds old, so addresses follow a retry at once.

    Answers are the same for everybody: whether the caller may have them is decided on each request.
    """

    def __init__(self, jobs: JobFinder, token_key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._token_key = token_key
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def find(self, alias: str) -> Service:
        """The service of that alias. Raises Refused (unknown), and what the store raises."""
        now, answer = self._clock(), self._answers.get(alias)
        if answer is None or now - answer.asked_at >= (AHEAD_S if answer.service.done() else FRESH_S):
            self._answers.pop(alias, None)
            if len(self._answers) >= _KEPT:
                del self._answers[next(iter(self._answers))]  # the oldest
            before = answer if answer is not None and answer.service.done() else None
            answer = _Answer(now, asyncio.ensure_future(self._look_up(alias)), before)
            answer.service.add_done_callback(_looked_at)
            self._answers[alias] = answer
        if answer.service.done():
            return answer.service.result()
        if answer.before is not None and now - answer.before.asked_at < FRESH_S:
            return answer.before.service.result()
        # Shielded: one visitor who goes away must not take the answer from the others.
        return await asyncio.shield(answer.service)

    def forget(self, alias: str) -> None:
        """Ask again the next time: the place did not answer."""
        self._answers.pop(alias, None)

    async def _look_up(self, alias: str) -> Service:
        name, rest = split(alias)
        job = await self._jobs.by_alias(name)
        target = resolve(rest, job.spec) if job is not None else None
        if job is None or target is None or target.label is None:
            raise Refused(Refusal.UNKNOWN)
        task = next((t for t in job.tasks if (t.role, t.index) == (target.role, target.index)), None)
        asked = job, target.label, task
        large = len(job.spec.role(target.role).command) > LARGE_COMMAND
        place = await asyncio.to_thread(self._place, *asked) if large else self._place(*asked)
        return Service(job, target, task, place)

    def _place(self, job: Job, label: str, task: Task | None) -> ServicePlace | None:
        if task is None or task.placement is None or task.state not in (State.RUNNING, State.STOPPING):
            return None
        ports = task.placement.ports.get(label)
        if not ports:
            return None
        command, env = job.spec.role(task.role).command, environment(job, task)
        made = made_token(self._token_key, job.uid)
        token = upstream_token(command, env, label=label, port=ports[0], made=made)
        is_jupyter = serves_jupyter(command, env, label=label, port=ports[0])
        return ServicePlace(task, task.placement, ports[0], token, is_jupyter)
