"""The local engine: the ``Engine`` interface over a ledger of task directories and a watch of it."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec

from pai_backend.engine.base import (
    Connection,
    EngineError,
    EngineEvent,
    GpuUse,
    LogStream,
    LogTime,
    Records,
    StartRefused,
    TaskPlan,
    TaskSeen,
    TaskUse,
)
from pai_backend.engine.holding import ControllerClaim, EngineHolder, claimed, handed_over
from pai_backend.engine.local import layout
from pai_backend.engine.local.accounts import SystemAccounts
from pai_backend.engine.local.control_groups import NONE, ControlGroups
from pai_backend.engine.local.gpu_use import gpu_use
from pai_backend.engine.local.holder_file import HolderFile
from pai_backend.engine.local.layout import LOOPBACK, LOOPBACK_6
from pai_backend.engine.local.ledger import TaskDirectories
from pai_backend.engine.local.listeners import OwnPorts
from pai_backend.engine.local.logfiles import LogReader, segments, times
from pai_backend.engine.local.retention import erase
from pai_backend.engine.local.task_use import TaskMeter
from pai_backend.engine.local.watching import DirectoryWatcher
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.node import Gpu, Node, Placement
from pai_backend.platform.disk_reserve import DiskReserve

P = ParamSpec("P")

LOG_BYTES = 256 * 2**20  # per segment and stream; two segments are kept
FOLLOW_S = 0.1  # how often a followed log is looked at while nothing new is there


class LocalEngine:
    """Runs tasks as process groups of this machine; see ``pai_backend.engine.base.Engine`` for the promises.

    Construction touches nothing, so that any process may use it for ``dial`` and ``logs``. One
    process at a time may ``watch``, and only that one may start, stop and forget.
    """

    def __init__(
        self,
        root: Path,
        nodes: Sequence[Node],
        *,
        log_bytes: int = LOG_BYTES,
        python: str = sys.executable,
        most_processes: int = 0,
        groups: Callable[[], ControlGroups] = lambda: NONE,
        accounts: SystemAccounts | None = None,
        reserve: DiskReserve | None = None,
        ledger: TaskDirectories | None = None,
    ) -> None:
        """``python``, ``most_processes``, ``groups``, ``accounts`` are as the ledger takes them, if none is given.

        ``reserve`` is given up when a task is to be stopped and the disk is full.
        """
        self._ledger = ledger or TaskDirectories(
            root.absolute(), log_bytes, python, most_processes=most_processes, groups=groups, accounts=accounts
        )
        self._nodes = {node.name: node for node in nodes}
        self._reserve = reserve
        self._accounts = accounts is not None
        self._watcher: DirectoryWatcher | None = None
        self._holder = HolderFile(root.absolute())
        self._meter = TaskMeter()
        self._own_ports = OwnPorts()

    async def holder(self) -> EngineHolder | None:
        """The record below the root. Raises EngineError."""
        return await asyncio.to_thread(self._holder.read)

    async def hold(self, claim: ControllerClaim, *, renewing: bool = False) -> EngineHolder:
        """Claim the root. A second controller with a copy of the database cannot watch it: the watch has a lock."""

        def change(found: EngineHolder | None) -> EngineHolder:
            return claimed(found, claim, datetime.now(UTC), self._holder.place, renewing=renewing)

        return await asyncio.to_thread(self._holder.change, change)

    async def hand_over(self, identity: str) -> None:
        """Let the root belong to another database. Raises EngineError."""

        def change(found: EngineHolder | None) -> EngineHolder:
            return handed_over(found, identity, datetime.now(UTC))

        await asyncio.to_thread(self._holder.change, change, unreadable_is_none=True)

    async def records(self, uid: TaskUid) -> Records:
        """What the task's directory holds. Raises EngineError."""
        return await asyncio.to_thread(self._ledger.records, uid)

    async def recall(self, uid: TaskUid) -> TaskSeen | None:
        """How a forgotten task ended: its directory below ``done/`` says so. Raises EngineError."""
        return await asyncio.to_thread(self._ledger.recall, uid)

    def watch(self) -> AsyncIterator[EngineEvent]:
        """Nodes and tasks as they are, ``Listed``, then changes. Raises EngineError when already being watched."""
        if self._watcher is not None:
            raise EngineError("this engine is already being watched")
        return self._watch(DirectoryWatcher(self._ledger, tuple(self._nodes.values())))

    async def _watch(self, watcher: DirectoryWatcher) -> AsyncIterator[EngineEvent]:
        self._watcher = watcher
        try:
            async for event in watcher.events():
                yield event
        finally:
            self._watcher = None

    async def start(self, plan: TaskPlan) -> None:
        """Make the task durable and spawn its shim, unless this uid was ever started or stopped before.

        Raises StartRefused for a node that is not there or a plan that no process can be given,
        EngineError when the disk or the process table refuses.
        """
        if plan.placement.node not in self._nodes:
            raise StartRefused(f"this engine has no node {plan.placement.node!r}; it has {', '.join(self._nodes)}")
        await self._placing(plan.uid, self._ledger.start, plan)
        await self._tell_forgotten(plan.uid)

    async def stop(self, uid: TaskUid, grace: float) -> None:
        """Ask the task to end, TERM now and KILL after ``grace`` seconds; durable on return. Raises EngineError."""
        try:
            await self._placing(uid, self._ledger.stop, uid, grace)
        except EngineError as error:
            if self._reserve is None or not self._reserve.relieves(error):
                raise
            await self._placing(uid, self._ledger.stop, uid, grace)
        await self._tell_forgotten(uid)

    async def _tell_forgotten(self, uid: TaskUid) -> None:
        """Report the end of a forgotten task once more: who asks for its start or end does not know of it."""
        if self._watcher is not None and (ended := await self.recall(uid)) is not None:
            self._watcher.tell(ended)

    async def refresh(self, uid: TaskUid, job_info: str) -> None:
        """Replace the task's job info file by one rename; a task that is over or unknown is left alone.

        Raises EngineError when the disk refuses.
        """
        await asyncio.to_thread(self._ledger.refresh, uid, job_info)

    async def _placing(self, uid: TaskUid, act: Callable[P, bool], *args: P.args, **kwargs: P.kwargs) -> None:
        """Do something that makes a task's directory, with the watch told before and after.

        Before, as its shim may be heard before the act has returned; after, as only then a missing
        directory means that it was removed. ``act`` returns whether the task is a live one now.
        """
        watcher = self._watcher
        if watcher is not None:
            watcher.expect(uid)
        live = await asyncio.to_thread(act, *args, **kwargs)
        if watcher is not None:
            watcher.placed(uid) if live else watcher.drop(uid)

    async def logs(self, uid: TaskUid, stream: LogStream, offset: int, follow: bool) -> AsyncGenerator[bytes, None]:
        """Output from byte ``offset`` on, in chunks; see the interface for offsets and ``follow``."""
        reader = LogReader(stream.value, offset)
        if await asyncio.to_thread(self._ledger.find, uid) is None:
            raise KeyError(uid)
        while True:
            data, ended = await asyncio.to_thread(self._read_log, uid, reader)
            if data:
                yield data
            elif ended or not follow:
                return
            else:
                await asyncio.sleep(FOLLOW_S)

    def _read_log(self, uid: TaskUid, reader: LogReader) -> tuple[bytes, bool]:
        """The next bytes, and whether the task had ended before they were looked for."""
        while (directory := self._ledger.find(uid)) is not None:
            ended = (directory / layout.EXIT).exists()
            try:
                data = reader.read(directory)
            except NotADirectoryError:
                return b"", True
            if data or self._ledger.find(uid) == directory:  # else it was moved meanwhile, as it is when forgotten
                return data, ended
        return b"", True

    async def log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """(oldest byte still kept, end) of a stream now. Raises KeyError for an unknown uid."""
        return await asyncio.to_thread(self._log_extent, uid, stream)

    def _log_extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        while (directory := self._ledger.find(uid)) is not None:
            try:
                kept = segments(directory, stream.value)
            except NotADirectoryError:  # a task that was stopped before it started has only a mark
                kept = []
            if kept:
                return kept[0].base, kept[-1].end
            if self._ledger.find(uid) == directory:  # else it was moved meanwhile
                return 0, 0
        raise KeyError(uid)

    async def log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        """When bytes of a stream came. Raises KeyError for an unknown uid."""
        return await asyncio.to_thread(self._log_times, uid, stream, start, end)

    def _log_times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        directory = self._ledger.find(uid)
        if directory is None:
            raise KeyError(uid)
        try:
            return [LogTime.of(*each) for each in times(directory, stream.value, start, end)]
        except NotADirectoryError:  # a task that was stopped before it started has only a mark
            return []

    async def dial(self, placement: Placement, uid: TaskUid, port: int) -> Connection:
        """A byte stream to the port on this machine. Raises EngineError when nothing of the task answers."""
        if self._accounts:
            await self._own_ports.require(self._ledger.live(uid), port)
        try:
            return Connection(*await asyncio.open_connection(LOOPBACK, port))
        except OSError as exc:
            refused = exc
        with suppress(OSError):
            return Connection(*await asyncio.open_connection(LOOPBACK_6, port))
        raise EngineError(f"nothing answers on port {port} of task {uid}: {refused.strerror or refused}") from refused

    async def gpu_use(self, placement: Placement, uid: TaskUid) -> GpuUse:
        """How much the GPUs of its placement work. Raises EngineError when that cannot be known."""
        gpus = self._gpus_of(placement)
        if not gpus:
            raise EngineError("its GPUs are not of this engine")
        return await asyncio.to_thread(gpu_use, gpus)

    def _gpus_of(self, placement: Placement) -> list[Gpu]:
        node = self._nodes.get(placement.node)
        return [gpu for gpu in node.gpus if gpu.index in placement.gpus] if node is not None else []

    async def uses(self, tasks: Mapping[TaskUid, Placement]) -> Mapping[TaskUid, TaskUse]:
        """What these tasks use now: of their processes, and of the GPUs of their placements."""
        given = {uid: self._gpus_of(placement) for uid, placement in tasks.items()}
        return await asyncio.to_thread(self._meter.look, given)

    async def forget(self, uid: TaskUid) -> None:
        """Stop reporting the task; its logs and working directory stay below ``done/``, its secrets go."""
        await asyncio.to_thread(self._ledger.forget, uid)
        if self._watcher is not None:
            self._watcher.drop(uid)

    async def erase(self, job: JobUid) -> None:
        """Remove the directories of the job's tasks and its record. Raises EngineError."""
        await asyncio.to_thread(erase, self._ledger.root, job)

    def task_address(self, node: Node, role: str, index: int) -> str:
        """That of the node: its tasks share one network."""
        return node.address

    async def busy_ports(self, machine: str, ports: Sequence[int]) -> set[int]:
        """Which of these ports something on this machine listens on; all nodes of this engine are this machine."""
        return await asyncio.to_thread(lambda: {port for port in ports if _busy(port)})

    async def aclose(self) -> None:
        """End the watch; tasks go on."""
        if self._watcher is not None:
            self._watcher.close()


def _busy(port: int) -> bool:
    """Whether a new server could not listen there.

    With SO_REUSEADDR a port whose last connections are in TIME_WAIT counts as free, as it does for the
    servers that will use it; on Linux and macOS a port with a listener still does not bind. On
    macOS a wildcard and a loopback listener do not exclude each other, so both addresses are tried.
    """
    for address in ("0.0.0.0", LOOPBACK):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return True
    return False
