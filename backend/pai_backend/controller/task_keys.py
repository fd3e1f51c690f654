"""Keys for SSH that plans hold: of a task's slot, and of its job; all that one placement needs in one write."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from pai_backend.access.gateway.names import SSH_LABEL
from pai_backend.access.keys import make_ed25519
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import Job, Task
from pai_backend.store.base import Store, peer_key_slot, slot_of

MANY = 50
"""Keys that are made in a thread: each takes a tenth of a millisecond."""


@dataclass(frozen=True)
class Keys:
    """What a task's server shows, and what the task logs in to its peers with (private PEMs)."""

    host: str
    peers: str


class TaskKeys:
    """Remembers keys from :meth:`prepare` until their first plan; asks the store for others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._coming: dict[str, asyncio.Task[Mapping[str, str]]] = {}

    async def prepare(self, job: Job, uids: Container[TaskUid]) -> None:
        """Have the keys of these tasks ready. Beside the write of their placement, they share its transaction.

        Raises Unavailable when the store is away; the plan asks again then.
        """
        tasks = [task for task in job.tasks if task.uid in uids and _has_ssh(job, task)]
        if not tasks:
            return
        slots = [slot_of(task.uid) for task in tasks]
        first = not any(task.attempt for task in tasks)
        self._coming |= dict.fromkeys(slots, coming := asyncio.create_task(self._kept(job.uid, slots, first=first)))
        try:
            await coming
        except ReadOnlyJob:
            self._drop(slots)  # it was stopped meanwhile: nothing starts
        except BaseException:
            self._drop(slots)
            raise

    def forget(self, job: Job) -> None:
        """Keep no keys of a job that is done with: tasks that were stopped before their first plan have left some."""
        self._drop([slot_of(task.uid) for task in job.tasks])

    def _drop(self, slots: Sequence[str]) -> None:
        for slot in slots:
            self._coming.pop(slot, None)

    async def of(self, job: Job, task: Task) -> Keys:
        """The keys of a task: of its slot, kept over attempts, and of its job. Raises Unavailable, ReadOnlyJob."""
        slot = slot_of(task.uid)
        coming = self._coming.pop(slot, None)
        found = await coming if coming is not None else await self._kept(job.uid, [slot])
        return Keys(found[slot], found[peer_key_slot(job.uid)])

    async def _kept(self, uid: JobUid, slots: Sequence[str], *, first: bool = False) -> Mapping[str, str]:
        """Keys of these slots and of their job, made where there are none, by slot; of those whose ``first`` run it is
        nobody has asked before.
        """
        wanted = [*slots, peer_key_slot(uid)]
        found = {} if first else await self._store.kept_task_keys(wanted)
        missing = [name for name in wanted if name not in found]
        if not missing:
            return found
        made = await asyncio.to_thread(_made, missing) if len(missing) > MANY else _made(missing)
        return found | await self._store.keep_task_keys(made)


def _made(names: Collection[str]) -> dict[str, tuple[str, str]]:
    return {name: make_ed25519(name) for name in names}


def _has_ssh(job: Job, task: Task) -> bool:
    return any(port.label == SSH_LABEL for port in job.spec.role(task.role).ports)
