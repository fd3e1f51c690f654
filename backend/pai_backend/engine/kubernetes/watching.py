"""The watch of the engine: what mirrors of pods, nodes and events say, told as events of tasks and nodes.

Rules of this file. A task is told when it reads otherwise than it was told last, and its end once. What is decided
here because time ran out is written on the pod first; that the pod then says so is what is told. A pod that is missing
in a mirror is asked for before its task is called vanished. Nothing here deletes but what was decided or is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pai_backend.engine.base import EngineError, EngineEvent, Listed, TaskSeen, TaskState
from pai_backend.engine.bundle.record import ExitRecord
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.ending import KEPT_GRACE_S, find, had_pod, remove_pod
from pai_backend.engine.kubernetes.failures import ApiConflict, ApiNotFound
from pai_backend.engine.kubernetes.gangs import Gangs
from pai_backend.engine.kubernetes.handover import Change, Handover, ObjectGone
from pai_backend.engine.kubernetes.handover import ResourceListed as ResourceListed
from pai_backend.engine.kubernetes.hosts import HostsKeeper
from pai_backend.engine.kubernetes.late_pods import LatePods
from pai_backend.engine.kubernetes.marks import Marks, never_started
from pai_backend.engine.kubernetes.mirrors import Mirrors
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of, slim_pod, uid_of, version_of
from pai_backend.engine.kubernetes.other_pods import OTHER_PODS
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind, places_of
from pai_backend.engine.kubernetes.pod_events import EventReason, Tell
from pai_backend.engine.kubernetes.reported_nodes import ReportedNodes
from pai_backend.engine.kubernetes.status.task import Around, PodReading, read_task, vanished
from pai_backend.engine.kubernetes.status.view import part
from pai_backend.engine.kubernetes.status.waits import StartTrouble
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit

_log = logging.getLogger(__name__)

AGAIN: Final = timedelta(seconds=5)  # before something is tried again that the cluster refused
COPY: Final = timedelta(seconds=5)  # for the rest of a log, when its task has ended
LookInside = Callable[[str], Awaitable[ExitRecord | None]]
KeepLog = Callable[[TaskUid], Awaitable[object]]


@dataclass
class _Known:
    """A task and its pod."""

    pod: Object
    trouble: StartTrouble | None = None
    inside: ExitRecord | None = None
    told: TaskSeen | None = None
    copy: asyncio.Task[None] | None = None  # of its log, from when it was asked to end
    copy_until: datetime | None = None
    busy: bool = False  # something is being asked of the cluster about it, after which it is read again


class PodWatcher:
    """One watch. ``forgotten`` and ``tell`` let the engine's own acts be seen in it."""

    def __init__(
        self,
        calls: Calls,
        mirrors: Mirrors,
        nodes: ReportedNodes,
        patience: TroublePatience,
        look: LookInside,
        keep_log: KeepLog,
        hosts: HostsKeeper,
        tell_event: Tell,
    ) -> None:
        self._calls = calls
        self._mirrors = mirrors
        self._nodes = nodes
        self._patience = patience
        self._look = look
        self._keep_log = keep_log
        self._hosts = hosts
        self._tell_event = tell_event
        self._late = LatePods(calls)
        self._wake = asyncio.Event()
        self._gangs = Gangs(calls, nodes.lacks, self._wake.set, tell_event)
        self._tasks: dict[TaskUid, _Known] = {}
        self._ended: dict[TaskUid, TaskExit] = {}  # told to have ended, whatever comes later
        self._forgotten: set[TaskUid] = set()
        self._out: list[EngineEvent] = []
        self._looks: dict[TaskUid, datetime] = {}  # when a task reads otherwise though nothing is heard of it
        self._due: set[TaskUid] = set()  # to be read again though nothing was heard of them
        self._work: set[asyncio.Task[None]] = set()
        self._listed = False
        self._closed = False

    def tell(self, seen: TaskSeen) -> None:
        """Report this of a task that has no pod."""
        self._report(seen)
        self._wake.set()

    def forget(self, uid: TaskUid) -> None:
        """Report nothing more of this task."""
        self._looks.pop(uid, None)
        if self._tasks.pop(uid, None) is not None:
            self._forgotten.add(uid)  # until its pod is gone
        self._ended.pop(uid, None)
        self._late.came(uid)

    def expect(self, uid: TaskUid) -> None:
        """Know that this process is about to make the task's pod."""
        self._late.expect(uid)

    def exit_of(self, uid: TaskUid) -> TaskExit | None:
        """How the task ended, once that was reported."""
        return self._ended.get(uid)

    def tell_again(self, ended: TaskSeen) -> None:
        """Report the end of a forgotten task once more."""
        self._out.append(ended)
        self._wake.set()

    def has_node(self, name: str) -> bool:
        """Whether a node is part of the cluster, as far as is known; False also where nothing is known."""
        return self._nodes.has(name)

    def pod_of(self, uid: TaskUid) -> Object | None:
        """The pod of a task, slim; None for a task without one, as far as is known."""
        known = self._tasks.get(uid)
        return known.pod if known is not None else None

    def close(self) -> None:
        """Let :meth:`events` end."""
        self._closed = True
        self._wake.set()

    async def events(self, marks: Callable[[], Awaitable[list[Marks]]]) -> AsyncIterator[EngineEvent]:
        """The watch as ``Engine.watch`` describes it. ``marks`` lists what the Secrets of tasks say."""
        handover = Handover()
        try:
            async with self._mirrors.following(handover):
                async for event in self._first(handover, marks):
                    yield event
                async for event in self._changes(handover):
                    yield event
        finally:
            copies = {known.copy for known in self._tasks.values() if known.copy is not None}
            for work in (*self._work, *copies):
                work.cancel()
            await asyncio.gather(*self._work, *copies, return_exceptions=True)
            await self._gangs.aclose()
            await self._hosts.aclose()

    async def _first(
        self, handover: Handover, marks: Callable[[], Awaitable[list[Marks]]]
    ) -> AsyncIterator[EngineEvent]:
        missing = self._mirrors.awaited
        while missing and not self._closed:
            for change in await self._mirrors.take(handover):
                missing -= {change.resource} if isinstance(change, ResourceListed) else set()
                self._note(change)
        if self._closed:
            return
        await self._settle(await marks())
        self._gangs.advance()
        self._read(set(self._tasks))
        copies = {known.copy for known in self._tasks.values() if known.copy is not None}
        if copies:  # of tasks that ended while nothing was watched, reported when their logs are kept
            await asyncio.wait(copies, timeout=COPY.total_seconds())
            self._read(set(self._tasks))
        while self._work:  # what launchers answer, and what is decided, belongs to the listing
            await asyncio.wait(self._work)
        self._read(self._due)
        for uid, known in self._tasks.items():
            if known.told is None:
                self._report(TaskSeen(uid, TaskState.STARTING, message="the cluster reports nothing further now"))
        for event in self._take():
            yield event
        self._listed = True
        yield Listed()

    async def _changes(self, handover: Handover) -> AsyncIterator[EngineEvent]:
        news = asyncio.ensure_future(self._mirrors.take(handover))
        try:
            while not self._closed:
                wake = asyncio.ensure_future(self._wake.wait())
                try:
                    await asyncio.wait({news, wake}, timeout=self._patience_left(), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    wake.cancel()
                self._wake.clear()
                due, self._due = self._due, set()
                if news.done():
                    for change in news.result():
                        due |= self._note(change)
                    news = asyncio.ensure_future(self._mirrors.take(handover))
                due |= self._gangs.advance()
                now = self._calls.now()
                due |= {uid for uid, at in self._looks.items() if at <= now}
                self._read(due)
                for event in self._take():
                    yield event
        finally:
            news.cancel()
            await asyncio.gather(news, return_exceptions=True)

    def _patience_left(self) -> float | None:
        """Seconds until some task reads differently though nothing is heard of it."""
        times = self._looks.values()
        return max(0.05, (min(times) - self._calls.now()).total_seconds()) if times else None

    def _read_at(self, uid: TaskUid, at: datetime | None) -> None:
        """Read a task again at that time, instead of another."""
        if at is None or uid not in self._tasks:
            self._looks.pop(uid, None)
        else:
            self._looks[uid] = at

    def _take(self) -> list[EngineEvent]:
        nodes = self._nodes.take()
        taken, self._out = self._out, []
        return [*nodes, *taken]

    def _note(self, change: Change) -> set[TaskUid]:
        """Take a change over; the tasks to read again."""
        if isinstance(change, ResourceListed):
            return set()
        found = change.last if isinstance(change, ObjectGone) else change.object
        if change.resource == "nodes":
            moved = self._nodes.note(found, gone=isinstance(change, ObjectGone), now=self._calls.now())
            if not moved:
                return set()  # a heartbeat, of which there are many
            return {uid for uid, known in self._tasks.items() if part(known.pod, "spec").get("nodeName") in moved}
        if change.resource in OTHER_PODS:
            self._nodes.note_other_pod(found, gone=isinstance(change, ObjectGone))
            return set()
        if change.resource == "events":
            name = self._mirrors.note_event(found, gone=isinstance(change, ObjectGone))
            return {uid for uid in (TaskUid(name),) if uid in self._tasks}  # most pods are called what their task is
        self._hosts.note(found, gone=isinstance(change, ObjectGone))
        self._nodes.note_task_pod(found, gone=isinstance(change, ObjectGone))
        uid = _task_of(found)
        if uid is not None:
            self._gangs.note(uid, found, gone=isinstance(change, ObjectGone))
        if uid is None or uid in self._forgotten:
            self._forgotten -= {uid} if isinstance(change, ObjectGone) else set()
            return set()
        known = self._tasks.get(uid)
        if known is None:
            known = self._tasks[uid] = _Known(found)
            if not self._late.came(uid) and self._listed and not isinstance(change, ObjectGone):
                self._spawn(known, self._settle_late(uid, known))
        known.pod = found
        if isinstance(change, ObjectGone):
            self._gone(uid, known)
            return set()
        return {uid}

    def _gone(self, uid: TaskUid, known: _Known) -> None:
        """A pod that is no longer there though its task is not forgotten: another client took our finalizer off."""
        del self._tasks[uid]
        self._looks.pop(uid, None)
        if uid in self._ended:
            return
        reading = self._reading(uid, known)
        if reading.seen.state is TaskState.EXITED and not reading.decided:
            self._report(reading.seen)
        else:
            self._report(vanished(uid, reading.seen.since, self._calls.now()))

    async def _settle(self, secrets: list[Marks]) -> None:
        """Make what Secrets say agree with what pods there are, at the first listing. Raises ClusterErrors."""
        self._gangs.settle(secrets)
        for marks in secrets:
            if marks.forgotten:
                late = self._tasks.get(marks.uid)  # made by a controller that slept meanwhile, and was killed then
                self.forget(marks.uid)
                if late is not None:
                    await remove_pod(self._calls, places_of(late.pod), name_of(late.pod), uid_of(late.pod))
            elif marks.uid not in self._tasks:
                await self._settle_without_pod(marks)

    async def _settle_without_pod(self, marks: Marks) -> None:
        """A Secret whose pod is not in the mirror: of a start that was cut off, or another client removed the pod."""
        places, name = ApiPaths(marks.namespace), naming.task_name(marks.uid)
        found = await find(self._calls, places.one(ResourceKind.POD, name))
        had = found is None and await had_pod(self._calls, places, name)
        if had:  # it may have been made between the two questions
            found = await find(self._calls, places.one(ResourceKind.POD, name))
        if found is not None:
            self._tasks[marks.uid] = _Known(slim_pod(found))
        elif had:
            self._report(vanished(marks.uid, None, self._calls.now()))
        elif marks.stop:
            self._report(never_started(marks, self._calls.now()))

    def _read(self, uids: Iterable[TaskUid]) -> None:
        for uid in uids:
            known = self._tasks.get(uid)
            if known is None or known.busy or uid in self._ended:
                continue
            reading = self._reading(uid, known)
            known.trouble = reading.trouble
            self._read_at(uid, reading.look_at)
            if known.copy is None and _is_leaving(known.pod):
                known.copy = asyncio.create_task(self._copy_log(uid, known))
            if reading.seen.state is TaskState.EXITED and self._still_copying(uid, known):
                continue
            if reading.decided:
                self._gangs.give_up(known.pod)
                self._spawn(known, self._decide(uid, known, reading.seen))
            elif reading.look_inside and known.inside is None:
                self._spawn(known, self._look_inside(known, reading.seen))
            else:
                self._report(reading.seen)

    async def _copy_log(self, uid: TaskUid, known: _Known) -> None:
        """Follow the log of a task that was asked to end: its kubelet removes the container soon after the end."""
        try:
            await self._keep_log(uid)
        except (EngineError, OSError) as error:
            _log.warning("the log of task %s cannot be kept: %s", uid, error)
        self._due.add(uid)
        self._wake.set()

    def _still_copying(self, uid: TaskUid, known: _Known) -> bool:
        """Whether the end of a task is not told yet, because the rest of its log is on its way."""
        if known.copy is None or known.copy.done():
            return False
        now = self._calls.now()
        known.copy_until = known.copy_until or now + COPY
        if now >= known.copy_until:
            known.copy.cancel()
            return False
        self._read_at(uid, known.copy_until)
        return True

    def _reading(self, uid: TaskUid, known: _Known) -> PodReading:
        return read_task(
            known.pod,
            Around(
                self._calls.now(),
                self._patience,
                node=self._nodes.away(str(part(known.pod, "spec").get("nodeName") or "")),
                trouble=known.trouble,
                inside=known.inside,
                gate=self._gangs.wait_of(uid, known.pod),
                events=self._mirrors.events_of(uid_of(known.pod)),
            ),
        )

    def _report(self, seen: TaskSeen) -> None:
        """Tell it unless it was told; a task that ends was told to run before, when it did and we watched."""
        if seen.uid in self._ended or seen.uid in self._forgotten:
            return
        known = self._tasks.get(seen.uid)
        before = known.told if known is not None else None
        if seen == before:
            return
        if seen.exit is not None:
            self._ended[seen.uid] = seen.exit
            unseen = self._listed and seen.since is not None
            if unseen and (before is None or before.state is not TaskState.RUNNING):
                self._out.append(TaskSeen(seen.uid, TaskState.RUNNING, since=seen.since))
        if known is not None:
            known.told = seen
        self._out.append(seen)

    def _spawn(self, known: _Known, work: Coroutine[Any, Any, None]) -> None:
        known.busy = True
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    @contextlib.asynccontextmanager
    async def _asking(self, uid: TaskUid, known: _Known) -> AsyncIterator[None]:
        """Ask the cluster something about a task, which is read again then: at the time noted for it, or at once."""
        try:
            yield
        except EngineError as error:
            _log.warning("task %s: %s", uid, error)
            self._read_at(uid, self._calls.now() + AGAIN)
        finally:
            known.busy = False
            if uid not in self._looks:
                self._due.add(uid)
            self._wake.set()

    async def _settle_late(self, uid: TaskUid, known: _Known) -> None:
        """Whether a pod that this process has not made may run is said by its task's Secret."""
        async with self._asking(uid, known):
            if not await self._late.settle(uid, known.pod):
                self.forget(uid)

    async def _look_inside(self, known: _Known, seen: TaskSeen) -> None:
        """Ask the launcher for its record. None is there while the command runs; its end makes the pod change."""
        async with self._asking(seen.uid, known):
            try:
                known.inside = await self._look(places_of(known.pod).one(ResourceKind.POD, name_of(known.pod)))
            finally:
                if known.inside is None:
                    self._report(seen)
            if known.inside is None:
                self._read_at(seen.uid, self._calls.now() + AGAIN)

    async def _decide(self, uid: TaskUid, known: _Known, seen: TaskSeen) -> None:
        """Write down that time has run out, on the very pod that was read; then delete the pod.

        What a node's being away means is decided by the node as the API server has it now.
        """
        async with self._asking(uid, known):
            assert seen.exit is not None
            if not await self._nodes.confirm(self._calls, str(part(known.pod, "spec").get("nodeName") or "")):
                self._read_at(uid, self._calls.now() + AGAIN)  # the mirror of nodes is behind
                return
            path = places_of(known.pod).one(ResourceKind.POD, name_of(known.pod))
            about = {
                "resourceVersion": version_of(known.pod),
                "annotations": {naming.VERDICT: seen.exit.model_dump_json()},
            }
            try:
                known.pod = slim_pod(await self._calls.patch(path, {"metadata": about}, Patch.MERGE))
                self._tell_event(known.pod, EventReason.GIVEN_UP, seen.exit.message)
                await self._calls.delete(path, uid=uid_of(known.pod), grace_s=KEPT_GRACE_S)
            except (ApiConflict, ApiNotFound):
                self._read_at(uid, self._calls.now() + AGAIN)  # it is no longer as it was read: the mirror will say how


def _is_leaving(pod: Object) -> bool:
    about = metadata(pod)
    asked = "deletionTimestamp" in about or naming.STOP in part(about, "annotations")
    return asked and bool(part(pod, "spec").get("nodeName"))


def _task_of(pod: Object) -> TaskUid | None:
    uid = part(metadata(pod), "annotations").get(naming.TASK)
    return TaskUid(uid) if isinstance(uid, str) else None
