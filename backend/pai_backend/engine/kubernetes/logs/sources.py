"""Where the output of a task is: the files that are kept of it, its kubelet, and whether more can come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import ApiClient
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.logs.kept import KeptLog
from pai_backend.engine.kubernetes.logs.kubelet import OutputSource
from pai_backend.engine.kubernetes.logs.lines import Position
from pai_backend.engine.kubernetes.namespaces import Find
from pai_backend.engine.kubernetes.objects import Object, slim_pod
from pai_backend.engine.kubernetes.places import ResourceKind
from pai_backend.engine.kubernetes.status.view import NotATask, view_of
from pai_backend.model.ids import TaskUid


@dataclass(frozen=True)
class Sources:
    """Of all tasks of a backend. ``limit``: bytes of a segment of what is kept.

    ``mirrored`` gives a task's pod, slim, where this process watches it: the cluster is not asked for it then.
    """

    client: ApiClient
    calls: Calls
    places: Find
    folder: Path
    limit: int
    mirrored: Callable[[TaskUid], Object | None] = lambda uid: None

    def kept(self, uid: TaskUid) -> KeptLog:
        """The files of a task, which may not be there yet."""
        return KeptLog(self.folder / naming.task_name(uid), self.limit)

    async def kubelet(self, uid: TaskUid, position: Position) -> OutputSource:
        """What its node has beyond a position."""
        return OutputSource(self.client, uid, await self._path(uid, ResourceKind.POD), position)

    async def is_known(self, uid: TaskUid) -> bool:
        """Whether there is a trace of the task on the cluster. Raises ClusterErrors."""
        return await self.has_pod(uid) or await find(self.calls, await self._path(uid, ResourceKind.SECRET)) is not None

    async def has_pod(self, uid: TaskUid) -> bool:
        """Whether its pod is there, running or not. Raises ClusterErrors."""
        return await self._pod(uid) is not None

    async def is_over(self, uid: TaskUid) -> bool:
        """Whether the container will never print again. Raises ClusterErrors."""
        pod = await self._pod(uid)
        if pod is None:
            return True
        try:
            view = view_of(slim_pod(pod))
        except NotATask:
            return True
        return view.over or view.task.ended is not None or (view.deleted_at is not None and not view.node)

    async def _pod(self, uid: TaskUid) -> Object | None:
        return self.mirrored(uid) or await find(self.calls, await self._path(uid, ResourceKind.POD))

    async def _path(self, uid: TaskUid, kind: ResourceKind) -> str:
        return (await self.places(uid)).one(kind, naming.task_name(uid))
