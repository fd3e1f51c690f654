"""A workspace name that job after job takes over while processes are killed, and what must be true of it then.

Each job runs until the next one takes the name, some by ``--replace`` while the last one runs, some after that was
stopped. A stopped holder is also run again, as by ``pai restart``. A request whose answer was lost is sent again with
its ``Idempotency-Key``, as clients do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import httpx

from pai_backend.model.job import Job, State
from tests.crash.backend import Backend

NAME = "lab"
FINAL = (State.STOPPED, State.SUCCEEDED, State.FAILED)


@dataclass
class Takeovers:
    """``count`` jobs that hold the name one after the other; every third one is stopped and run again between."""

    count: int
    _again: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in order."""
        return [f"holder-{number:02d}" for number in range(self.count)]

    async def run(self, backend: Backend) -> None:
        """Take the name over and over; returns when the last job was acknowledged and was asked to stop."""
        if not self.count:
            return
        async with httpx.AsyncClient(timeout=10.0) as client:
            for number, name in enumerate(self.jobs):
                while not await backend.took_over(client, name, _document(name, backend.image)):
                    await backend.answering()
                if number % 3 == 1:
                    await self._stopped_and_started(backend, client, name)
            await self._stopped(backend, client, self.jobs[-1])

    async def _stopped_and_started(self, backend: Backend, client: httpx.AsyncClient, name: str) -> None:
        """A stop that comes before it runs again would take the restart back, so that is waited for."""
        await self._stopped(backend, client, name)
        while name in dict(await backend.asked_unfinished(client)):
            await backend.something_happened()
        while not await backend.asked_to_start(client, name):
            await backend.answering()
        while not dict(await backend.asked_unfinished(client)).get(name, "").startswith("RUNNING"):
            await backend.something_happened()
        self._again.append(name)

    async def _stopped(self, backend: Backend, client: httpx.AsyncClient, name: str) -> None:
        while not await backend.asked_to_stop(client, name):
            await backend.answering()

    def audit(self, jobs: dict[str, Job], held_by: list[str]) -> list[str]:
        """Every promise that does not hold: ``held_by`` are the names of the jobs that hold the name now."""
        if not self.count:
            return []
        found = [f"job {name} was acknowledged and is lost" for name in self.jobs if name not in jobs]
        if held_by != [self.jobs[-1]]:
            found.append(f"{NAME} is held by {held_by}, not by {self.jobs[-1]} alone")
        aliases = [name for name in self.jobs if name in jobs and jobs[name].alias == NAME]
        if aliases != held_by:
            found.append(f"{aliases} have the alias {NAME}")
        for name in self.jobs:
            job = jobs.get(name)
            if job is not None and job.state not in FINAL:
                found.append(f"{name} was replaced and is {job.state}")
            if job is not None and job.attempt != self._again.count(name):
                found.append(f"{name} was run again {job.attempt} times, not {self._again.count(name)}")
        return found


def _document(name: str, image: str) -> bytes:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "sleep 600"}
    return json.dumps({"jobName": name, "address": NAME, "image": image, "taskRoles": [role]}).encode()
