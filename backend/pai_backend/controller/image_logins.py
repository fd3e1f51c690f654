"""Credentials for private images: from a v1 document's authFile, or from a v2 document with its secrets put in.

An authFile is read beside the loop and shared by the tasks of its job. Whoever plans a task waits only a moment for
it and is asked to come back, so that a storage which hangs holds up nothing but its own job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from pydantic import SecretStr

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.launch.directories import directories
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.plan import RegistryLogin
from pai_backend.model.spec import ImageAuth, TaskRole
from pai_backend.model.tags import UnresolvedTag, fill
from pai_backend.storage.faults import Away, StorageFault
from pai_backend.storage.reach import Reach

MAX_BYTES = 4096  # three short lines
READ_TIMEOUT_S = 20.0
MOMENT_S = 1.0  # that a plan waits for it before it is put off
KEPT_S = 60.0  # for the other tasks of the job; a retry after that reads anew, so that a corrected file is seen
AT_ONCE = 4  # readers are processes


class ImageLogins:
    """Logins of jobs, read when asked for. ``clock`` is monotonic, in seconds."""

    def __init__(self, reach: Reach, clock: Callable[[], float] = monotonic) -> None:
        self._reach = reach
        self._clock = clock
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reading: dict[JobUid, asyncio.Task[RegistryLogin]] = {}
        self._since: dict[JobUid, float] = {}

    async def of(self, job: Job, role: TaskRole, secrets: Mapping[str, Any]) -> RegistryLogin | None:
        """The login for the image of a role; None when its document names none.

        Raises StartRefused when there can be none as things are, EngineError when a later try may succeed.
        """
        if role.image_auth is not None:
            return _filled(role.image_auth, secrets)
        if not job.spec.auth_file:
            return None
        reading = self._begin(job)
        done, _ = await asyncio.wait({reading}, timeout=MOMENT_S)
        if not done:
            raise EngineError("the authFile is still being read")
        if reading.exception() is not None:
            self._forget(job.uid)
        try:
            return reading.result()
        except StorageFault as fault:
            kind = EngineError if isinstance(fault, Away) else StartRefused
            raise kind(f"authFile: {fault.line()}") from None

    def _begin(self, job: Job) -> asyncio.Task[RegistryLogin]:
        """The one reading of this job that is under way or fresh."""
        now = self._clock()
        for uid in [uid for uid, since in self._since.items() if now - since > KEPT_S and self._reading[uid].done()]:
            self._forget(uid)
        if job.uid not in self._reading:
            self._reading[job.uid] = asyncio.create_task(self._read(job))
            self._since[job.uid] = now
        return self._reading[job.uid]

    def _forget(self, uid: JobUid) -> None:
        """Let a later plan read anew. Asks for the error of what nobody came back for, so that it is not logged."""
        self._since.pop(uid, None)
        reading = self._reading.pop(uid, None)
        if reading is not None and not reading.cancelled():
            reading.exception()

    async def _read(self, job: Job) -> RegistryLogin:
        uri = directories(job, self._reach.default_fs_uri).auth_file
        async with self._slots:
            text = await self._reach.small_file(uri, job.user, MAX_BYTES, READ_TIMEOUT_S)
        return parse_auth_file(text)

    async def aclose(self) -> None:
        """Give up what is being read."""
        for reading in self._reading.values():
            reading.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)
        self._reading.clear()
        self._since.clear()


def parse_auth_file(text: bytes) -> RegistryLogin:
    """Registry, user and password, a line each (OpenPAI v1). Raises StorageFault, which quotes nothing of it."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise StorageFault("the file is not UTF-8 text", "write three lines: registry, user, password") from None
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != 3 or not all(line.strip() for line in lines):
        raise StorageFault(f"the file has {len(lines)} lines", "write three: registry (docker.io), user, password")
    return RegistryLogin(registry_uri=lines[0].strip(), username=lines[1].strip(), password=SecretStr(lines[2]))


def _filled(auth: ImageAuth, secrets: Mapping[str, Any]) -> RegistryLogin:
    try:
        username, password, registry = (
            fill(text, "secrets", secrets) for text in (auth.username, auth.password, auth.registry_uri)
        )
    except UnresolvedTag as unresolved:
        raise StartRefused(f"auth of the image: {unresolved}") from None
    return RegistryLogin(username=username, password=SecretStr(password), registry_uri=registry)
