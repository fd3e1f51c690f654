"""What is kept of the use of jobs with an ``idleTimeout``, as the other rooms see it.

Processes that pass bytes to jobs write when they were last used; the controller reads that, and keeps their clocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol

from pai_backend.model.idle import IdleClock, UseSource
from pai_backend.model.ids import JobUid
from pai_backend.model.job import NewEvent

Uses = Mapping[tuple[JobUid, UseSource], datetime]
"""When each source last used each job, by the clock of who saw it."""


class IdleStore(Protocol):
    """A part of :class:`~pai_backend.store.base.Store`."""

    async def note(self, uses: Uses) -> None:
        """Keep these uses; each moves the mark of its source on, whatever the clocks of those who write. Wakes no one.

        A job that is not there, or is over, is left out.
        """
        ...

    async def uses(self, jobs: Collection[JobUid]) -> Mapping[JobUid, Mapping[UseSource, datetime]]:
        """The last use of each of these jobs by each source; what was never used is not in it."""
        ...

    async def clocks(self, jobs: Collection[JobUid]) -> Mapping[JobUid, IdleClock]:
        """The clocks of these jobs, as far as they have begun."""
        ...

    async def keep(
        self, clocks: Mapping[JobUid, IdleClock], told: Mapping[JobUid, NewEvent], at: datetime, epoch: int
    ) -> None:
        """Write clocks, and the events of some, in one transaction; that wakes others if it tells. Raises Fenced.

        Of a job that is over meanwhile nothing is written.
        """
        ...

    async def stop(
        self, uid: JobUid, seen: Mapping[UseSource, datetime], reason: str, at: datetime, epoch: int
    ) -> bool:
        """Write the wish that the job end because it is idle, unless a use was written that is not among ``seen``.

        Requests of a Jupyter server's page do not count here: they are use only where its kernels tell nothing.

        False: it was used, or is over or asked to stop anyway. Raises NoSuchJob, Fenced.
        """
        ...
