"""What of a job is secret: the values of its document, the token and the host keys it is given; and covering them.

One of these serves a process. It remembers the scrubbers of the jobs that were asked for last, because a log is read
many times and building one takes about as long as reading the job.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pai_backend.access.gateway.names import SSH_LABEL
from pai_backend.access.keys import job_key_slot
from pai_backend.launch.jupyter import made_token
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.scrub import Scrubber, texts
from pai_backend.store.base import peer_key_slot

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

SIGNING_SECRET = "service-signing"
"""Name of the server secret that job tokens of services are derived from."""

REMEMBERED = 262_144
"""States of all remembered scrubbers together, about 40 MiB; those of an ordinary job have a thousand."""

_LARGE = 4096  # characters of values: their tables take over 5 ms, so they are made in a thread


class JobSecrets:
    """The secrets of jobs, of which nothing is ever shown in a ``repr``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._signing_key: str | None = None
        self._scrubbers: OrderedDict[str, Scrubber] = OrderedDict()
        self._remembered = 0

    async def values(self, job: Job) -> Mapping[str, Any]:
        """Names and values of the document's secrets. Raises Unavailable."""
        return await self._store.jobs.secrets(job.uid) if job.spec.secret_names else {}

    async def token(self, uid: JobUid) -> str:
        """The token that the job's tasks get for their Jupyter servers. Raises Unavailable."""
        if self._signing_key is None:
            self._signing_key = await self._store.secrets.get(SIGNING_SECRET, secrets.token_hex(32))
        return made_token(self._signing_key, uid)

    async def scrubber(self, job: Job, slot: str | None = None) -> Scrubber:
        """What finds all of this in a text; with ``slot`` also that task's host key and the job's own keys.

        Raises Unavailable.
        """
        key = f"{slot or job.uid}@{job.attempt}"  # a restarted job gets new keys of its own
        known = self._scrubbers.get(key)
        if known is not None:
            self._scrubbers.move_to_end(key)
            return known
        found = [*texts(await self.values(job)), await self.token(job.uid)]
        own = (job_key_slot(job.uid), peer_key_slot(job.uid))
        names = (slot, *own) if slot is not None and _has_keys(job) else ()
        keys = [pem for name in names if (pem := await self._store.task_keys.get(name)) is not None]
        found += keys
        large = sum(map(len, found)) > _LARGE
        made = await asyncio.to_thread(lambda: Scrubber(found).prepare()) if large else Scrubber(found)
        # Else it waits to be placed, and its keys are still to be made; those of a job that has ended are gone.
        if len(keys) == len(names) or job.state.final:
            self._remember(key, made)
        return made

    def _remember(self, key: str, scrubber: Scrubber) -> None:
        if key in self._scrubbers:  # another call has made it meanwhile
            return
        self._scrubbers[key] = scrubber
        self._remembered += scrubber.size
        while self._remembered > REMEMBERED and len(self._scrubbers) > 1:
            _, dropped = self._scrubbers.popitem(last=False)
            self._remembered -= dropped.size


def _has_keys(job: Job) -> bool:
    """Whether tasks of the job have an SSH server, and so keys."""
    return any(port.label == SSH_LABEL for role in job.spec.task_roles for port in role.ports)
