"""Which database this is, and what its engine runs that it does not know, as the other rooms see it (ADR 0025)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job
from pai_backend.store.orphans import Orphan
from pai_backend.store.taking_back import LostJob


class RecoveryStore(Protocol):
    """A part of :class:`~pai_backend.store.base.Store`."""

    async def identity(self) -> str:
        """Which database this is: made at the first call, and the same in every copy and backup of it."""
        ...

    async def seal(self, plain: bytes) -> str:
        """``plain`` as text that only holders of the database's keys can read or make."""
        ...

    async def unseal(self, sealed: str) -> bytes:
        """What was sealed. Raises Unavailable when no key opens it."""
        ...

    async def take_back(self, lost: LostJob, epoch: int, at: datetime) -> Job:
        """Store a job that runs and is not known, or known in an earlier state. Raises CannotTakeBack, Fenced."""
        ...

    async def add_log_place(self, mark: str) -> None:
        """Logs of tasks are written to the directory with this mark (``engine.log_place``). Idempotent."""
        ...

    async def log_places(self) -> frozenset[str]:
        """The marks of all directories that logs were written to."""
        ...

    async def orphans(self) -> list[Orphan]:
        """Tasks that the engine has and the database does not know, the longest known first."""
        ...

    async def put(self, found: Sequence[Orphan], gone: Collection[TaskUid], epoch: int) -> None:
        """Write what the controller sees of orphans. Raises Fenced."""
        ...

    async def end(self, task: TaskUid, by: str) -> None:
        """Ask the controller to end an orphan, and wake it. Idempotent. Raises NoSuchTask."""
        ...
