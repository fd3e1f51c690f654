"""Asking tasks to end, and removing what is left of those whose exit is recorded; see ``marks``."""

from __future__ import annotations

import contextlib
import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from pai_backend.engine.base import EngineError, TaskState
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import DEADLINE_S, Calls, Patch
from pai_backend.engine.kubernetes.failures import AlreadyExists, ApiConflict, ApiForbidden, ApiNotFound, ClusterError
from pai_backend.engine.kubernetes.marks import Marks, marks_of, rfc3339, tombstone
from pai_backend.engine.kubernetes.namespaces import is_missing
from pai_backend.engine.kubernetes.nodes import away
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of, uid_of, version_of
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind, node
from pai_backend.engine.kubernetes.status.task import Around, read_task
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit

_log = logging.getLogger(__name__)

TRIES: Final = 20  # of a change that others may come before
KEPT_GRACE_S: Final = 5  # a kept task has nothing to finish but its SSH sessions
TOMBSTONE: Final = timedelta(hours=1)
"""How long a forgotten task is remembered: a start that was on its way when it was forgotten is far younger."""


class Ender:
    """Stops and forgets tasks in one namespace."""

    def __init__(self, calls: Calls, places: ApiPaths, instance: str) -> None:
        self._calls = calls
        self._places = places
        self._instance = instance

    async def stop(self, uid: TaskUid, grace: float) -> Marks | None:
        """Ask the task to end; durable on return.

        Returns its marks when it has no pod and never had one, or was forgotten; else None. Raises ClusterErrors.
        """
        marks = await self._write_stop(uid)
        if marks is None:
            return Marks(uid, stop=rfc3339(self._calls.now()))
        if marks.forgotten:
            return marks
        pod = await find(self._calls, self._places.one(ResourceKind.POD, naming.task_name(uid)))
        if pod is None:
            return None if await had_pod(self._calls, self._places, naming.task_name(uid)) else marks
        await end_pod(self._calls, self._places, pod, marks.stop, grace)
        return None

    async def _write_stop(self, uid: TaskUid) -> Marks | None:
        """Let the task's Secret say that it was asked to end; the first time that it was asked stands.

        None where there is no namespace, and so nothing of the task.
        """
        name, asked = naming.task_name(uid), rfc3339(self._calls.now())
        path = self._places.one(ResourceKind.SECRET, name)
        for _ in range(TRIES):
            try:
                found = await find(self._calls, path)
                if found is None:
                    body = tombstone(uid, self._instance, self._places.namespace, asked)
                    found = await self._calls.create(self._places.all(ResourceKind.SECRET), body)
                elif (marks := marks_of(found)) is not None and not marks.stop and not marks.forgotten:
                    change = _at_version(found, {"annotations": {naming.STOP: asked}})
                    found = await self._calls.patch(path, change, Patch.MERGE)
            except (AlreadyExists, ApiConflict):
                continue  # another client was faster: look again
            except (ApiForbidden, ApiNotFound) as error:
                if await is_missing(self._calls, self._places.namespace):
                    return None
                if isinstance(error, ApiForbidden):
                    raise
                continue
            marks = marks_of(found)
            if marks is None:
                raise EngineError(f"a Secret {name} exists and does not belong to jupyter-pai; delete or rename it")
            return marks
        raise EngineError(f"the Secret {name} keeps changing while task {uid} is to be stopped")

    async def forget(
        self,
        uid: TaskUid,
        *,
        ended: TaskExit | None,
        keep: Callable[[TaskUid], Awaitable[object]],
        pod: Object | None = None,
    ) -> None:
        """Remove the task's pod and secrets; a mark stays. ``ended``: how, where that is known, whatever the pod says.

        ``pod`` is the task's, slim, where a mirror has it; else it is asked for. ``keep`` copies its log, which goes
        with the pod. Raises EngineError when it has not ended, or when its log is unavailable though its node is there;
        ClusterErrors.
        """
        try:
            await self._forget(uid, ended=ended, keep=keep, pod=pod)
        except ApiForbidden:
            if not await is_missing(self._calls, self._places.namespace):
                raise

    async def _forget(
        self, uid: TaskUid, *, ended: TaskExit | None, keep: Callable[[TaskUid], Awaitable[object]], pod: Object | None
    ) -> None:
        name = naming.task_name(uid)
        pod = pod or await find(self._calls, self._places.one(ResourceKind.POD, name))
        if pod is not None and ended is None and not _has_ended(pod):
            raise EngineError(f"task {uid} has not ended, so it cannot be forgotten")
        if pod is not None:
            await self._keep_log(uid, pod, keep)
        await self._write_forgotten(name, ended, is_tasks=pod is not None)
        if pod is None or _has_login(pod, uid):
            await self._calls.delete(self._places.one(ResourceKind.SECRET, naming.login_name(uid)))
        if pod is not None:
            await remove_pod(self._calls, self._places, name, uid_of(pod))

    async def _write_forgotten(self, name: str, ended: TaskExit | None, *, is_tasks: bool) -> None:
        """Let the task's Secret say so, and how it ended, and no other.

        ``is_tasks``: its pod was made, so no other Secret is in its place.
        """
        path = self._places.one(ResourceKind.SECRET, name)
        if not is_tasks:
            found = await find(self._calls, path)
            marks = marks_of(found) if found is not None else None
            if marks is None or marks.forgotten is not None:
                return
        written: dict[str, str | None] = {naming.FORGOTTEN: rfc3339(self._calls.now())}
        written |= {naming.JOB_RECORD: None, naming.TASK_RECORD: None}
        if ended is not None:
            # Without the message, which may repeat what the task wrote.
            written[naming.VERDICT] = ended.model_copy(update={"message": ""}).model_dump_json()
        with contextlib.suppress(ApiNotFound):  # its attempt was deleted as a whole meanwhile
            await self._calls.patch(path, {"metadata": {"annotations": written}, "data": None}, Patch.MERGE)

    async def _keep_log(self, uid: TaskUid, pod: Object, keep: Callable[[TaskUid], Awaitable[object]]) -> None:
        try:
            await keep(uid)
        except ClusterError as error:
            name = str(part(pod, "spec").get("nodeName") or "")
            found = await find(self._calls, node(name)) if name else None
            if found is not None and away(found) is None:
                raise
            _log.warning("the log of task %s is lost with its node: %s", uid, error)
        except OSError as error:
            raise EngineError(f"the log of task {uid} cannot be kept: {error.strerror or error}") from None

    async def sweep(self, secrets: list[Marks], now: datetime) -> None:
        """Delete what is left of attempts of which every task was forgotten long ago. Raises ClusterErrors."""
        for owner, tasks in _by_owner(secrets).items():
            old = [task for task in tasks if task.forgotten is not None and now - task.forgotten > TOMBSTONE]
            if owner is None:
                for task in old:
                    await self._calls.delete(self._places.one(ResourceKind.SECRET, naming.task_name(task.uid)))
            elif len(old) == len(tasks):
                await self._calls.delete(self._places.one(ResourceKind.CONFIG_MAP, owner[0]), uid=owner[1])


async def erase(calls: Calls, of_job: Iterable[Marks]) -> None:
    """Delete what is left of a job, all of whose tasks are forgotten. Raises EngineError, and ClusterErrors."""
    marks = list(of_job)
    for task in marks:
        if task.forgotten is None:
            raise EngineError(f"task {task.uid} is not forgotten yet, so its job is not erased")
    for task in marks:
        places = ApiPaths(task.namespace)
        await calls.delete(places.one(ResourceKind.SECRET, naming.task_name(task.uid)))
        if task.owner is not None:
            await calls.delete(places.one(ResourceKind.CONFIG_MAP, task.owner[0]), uid=task.owner[1])


def _has_login(pod: Object, uid: TaskUid) -> bool:
    """Whether the pod's image was fetched with a Secret of the task's own."""
    secrets = part(pod, "spec").get("imagePullSecrets") or ()
    return any(each.get("name") == naming.login_name(uid) for each in secrets)


def _by_owner(secrets: list[Marks]) -> dict[tuple[str, str] | None, list[Marks]]:
    found: dict[tuple[str, str] | None, list[Marks]] = defaultdict(list)
    for task in secrets:
        found[task.owner].append(task)
    return found


async def end_pod(calls: Calls, places: ApiPaths, pod: Object, asked: str, grace: float) -> None:
    """Write on the pod that it was asked to end, and delete it, which sends TERM now and KILL after the grace.

    Its finalizer keeps it. One that is over is left alone: it has ended by itself. Raises ClusterErrors.
    """
    if part(pod, "status").get("phase") in ("Failed", "Succeeded"):
        return
    path = places.one(ResourceKind.POD, name_of(pod))
    try:
        if naming.STOP not in part(metadata(pod), "annotations"):
            await calls.patch(path, {"metadata": {"annotations": {naming.STOP: asked}}}, Patch.MERGE)
    except ApiNotFound:
        return
    # Never 0: the API server would drop the pod before its kubelet has ended it.
    await calls.delete(path, uid=uid_of(pod), grace_s=max(1, math.ceil(grace)))


async def remove_pod(calls: Calls, places: ApiPaths, name: str, pod_uid: str) -> None:
    """Delete the pod of that uid and take our finalizer off it, and of no other pod. Raises EngineError."""
    path = places.one(ResourceKind.POD, name)
    pod = await calls.delete(path, uid=pod_uid, grace_s=KEPT_GRACE_S)
    for _ in range(TRIES):
        holders = metadata(pod).get("finalizers") or [] if pod is not None else []
        if pod is None or uid_of(pod) != pod_uid or naming.FINALIZER not in holders:
            return
        change = _at_version(pod, {"finalizers": [each for each in holders if each != naming.FINALIZER] or None})
        try:
            await calls.patch(path, change, Patch.MERGE)
            return
        except ApiNotFound:
            return
        except ApiConflict:
            pod = await find(calls, path)  # its kubelet has written meanwhile
    raise EngineError(f"the pod {name} keeps changing while it is to be released; it is tried again")


async def had_pod(calls: Calls, places: ApiPaths, name: str) -> bool:
    """Whether events tell of a pod of that name, which is not there. Raises ClusterErrors.

    Events are kept for an hour by default (``--event-ttl`` of the API server), and asked for seconds after a crash.
    """
    query = (("fieldSelector", f"involvedObject.kind=Pod,involvedObject.name={name}"),)
    return bool((await calls.page(places.all(ResourceKind.EVENT), query=query)).get("items"))


async def find(calls: Calls, path: str, *, deadline_s: float = DEADLINE_S) -> Object | None:
    """The object, None when it is not there. Raises other ClusterErrors."""
    try:
        return await calls.get(path, deadline_s=deadline_s)
    except ApiNotFound:
        return None


def _at_version(found: Object, about: Object) -> Object:
    """A change of an object's metadata that holds only if it has not changed since it was read."""
    return {"metadata": {**about, "resourceVersion": version_of(found)}}


def _has_ended(pod: Object, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> bool:
    reading = read_task(pod, Around(clock(), TroublePatience()))
    return reading.seen.state is TaskState.EXITED and not reading.decided
