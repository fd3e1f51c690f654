"""The user's wish that tasks which are kept for debugging be released."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pai_backend.model.ids import JobUid
from pai_backend.model.job import Task
from pai_backend.store import intent, lookup
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import Cipher


@dataclass(frozen=True)
class ReleaseRequest:
    """Who releases which tasks of a job, by their names (``role-index``), and when. None: of all that are kept."""

    uid: JobUid
    names: Collection[str] | None
    by: str
    at: datetime
    cipher: Cipher

    def __call__(self, conn: Connection) -> tuple[Task, ...]:
        """Record it; returns the tasks that this releases. Those not kept, or released already, are left alone.

        Raises NoSuchJob, UnknownKey.
        """
        job = lookup.job(conn, self.uid, self.cipher)
        going = tuple(
            task
            for task in job.kept
            if task.uid not in job.released and (self.names is None or task.name in self.names)
        )
        if going:
            wanted = job.model_copy(update={"released": (*job.released, *(task.uid for task in going))})
            event = NewEvent("job.release-requested", {"by": self.by, "tasks": [task.name for task in going]})
            intent.write(conn, wanted, [event], self.at)
        return going
