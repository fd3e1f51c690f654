"""The watch of the local engine: hints from shims, a slow scan as the safety net, and what to say of both.

A hint names a task; what is reported is always what the task's directory says when looked at. A task
is reported when its state has changed since the last report, and its end exactly once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from pai_backend.engine.base import EngineError, EngineEvent, Listed, NodeSeen, TaskSeen, TaskState
from pai_backend.engine.local import layout
from pai_backend.engine.local.hints import HintFifo
from pai_backend.engine.local.layout import HANDOVER_S, take_lock
from pai_backend.engine.local.ledger import UNSTARTED, TaskDirectories
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Node

_log = logging.getLogger(__name__)

SCAN_S = 2.0  # a shim that was killed, or a directory that was removed, is noticed within this


class DirectoryWatcher:
    """One watch: at most one per root at a time, in whatever process."""

    def __init__(self, ledger: TaskDirectories, nodes: Sequence[Node]) -> None:
        self._ledger = ledger
        self._nodes = tuple(nodes)
        self._reported: dict[TaskUid, TaskState | None] = {}  # None: known, nothing reported yet
        self._placed: set[TaskUid] = set()  # those that had a directory: without one they have vanished
        self._hinted: set[TaskUid] = set()
        self._recalled: list[TaskSeen] = []  # ends of forgotten tasks that were asked to start
        self._wake = asyncio.Event()
        self._closed = False

    def expect(self, uid: TaskUid) -> None:
        """A task of that uid is about to be made: report it when it is seen."""
        self._reported.setdefault(uid, None)

    def placed(self, uid: TaskUid) -> None:
        """The task has a directory from now on, which must not vanish unnoticed."""
        self._placed.add(uid)
        self.hint(uid)

    def tell(self, ended: TaskSeen) -> None:
        """Report the end of a forgotten task once more."""
        self._recalled.append(ended)
        self._wake.set()

    def hint(self, uid: TaskUid) -> None:
        """Look at this task soon."""
        self._hinted.add(uid)
        self._wake.set()

    def drop(self, uid: TaskUid) -> None:
        """Report nothing more of this task."""
        self._reported.pop(uid, None)
        self._placed.discard(uid)

    def close(self) -> None:
        """Let :meth:`events` end."""
        self._closed = True
        self._wake.set()

    async def events(self) -> AsyncIterator[EngineEvent]:
        """The watch as ``Engine.watch`` describes it. Raises EngineError when another process watches this root."""
        await asyncio.to_thread(self._ledger.prepare_folders)
        lock = await asyncio.to_thread(_take_watch_lock, self._ledger.root)
        try:
            await asyncio.to_thread(self._ledger.clear_abandoned)
            with HintFifo(self._ledger.root / layout.EVENTS_FIFO, lambda uid: self.hint(TaskUid(uid))):
                for node in self._nodes:
                    yield NodeSeen(node)
                for seen in await asyncio.to_thread(self._list):
                    if self._news(seen):
                        yield seen
                yield Listed()
                async for seen in self._changes():
                    yield seen
        finally:
            os.close(lock)

    async def _changes(self) -> AsyncIterator[TaskSeen]:
        loop = asyncio.get_running_loop()
        next_scan = loop.time() + SCAN_S
        while not self._closed:
            try:
                async with asyncio.timeout_at(next_scan):
                    await self._wake.wait()
            except TimeoutError:
                pass  # time for a scan, below
            self._wake.clear()
            recalled, self._recalled = self._recalled, []
            for seen in recalled:
                yield seen
            hinted, self._hinted = self._hinted, set()
            found = await asyncio.to_thread(self._look, hinted)
            if loop.time() >= next_scan:
                found += await asyncio.to_thread(self._scan, dict(self._reported))
                next_scan = loop.time() + SCAN_S
            for seen in found:
                if self._news(seen):
                    yield seen

    def _news(self, seen: TaskSeen) -> bool:
        """Whether to report this; remembers that it was.

        STARTING is reported only in the first listing: afterwards the caller knows what it started.
        A task dropped while it was being looked at stays dropped.
        """
        if seen.uid not in self._reported or self._reported[seen.uid] in (seen.state, TaskState.EXITED):
            return False
        self._reported[seen.uid] = seen.state
        return True

    def _list(self) -> list[TaskSeen]:
        """Everything there is. A task whose start was cut short by a crash goes on starting."""
        found = []
        for uid in self._ledger.uids():
            self._reported.setdefault(uid, None)
            self._placed.add(uid)
            seen = self._look_at(uid)
            if seen is None:
                continue
            self._go_on(seen)
            found.append(seen)
        return found

    def _go_on(self, seen: TaskSeen) -> None:
        """Start a shim for a task that has not started and that has no shim, as after a crash."""
        if seen.state in UNSTARTED and not self._ledger.kept(seen.uid):
            try:
                self._ledger.spawn(seen.uid)
            except OSError as exc:
                _log.warning("task %s cannot go on starting: %s", seen.uid, exc)

    def _look(self, uids: Iterable[TaskUid]) -> list[TaskSeen]:
        """The hinted tasks as they are now, and those whose shim has ended; a hint at no known task is ignored."""
        found = []
        ended = self._ledger.reap()
        for uid in {*uids, *ended} & self._reported.keys():
            seen = self._look_at(uid, shim_ended=uid in ended)
            if seen is not None and seen.state is not TaskState.STARTING:
                found.append(seen)
        return found

    def _scan(self, reported: dict[TaskUid, TaskState | None]) -> list[TaskSeen]:
        """Tasks that need a closer look: not ended, and without a shim or without a directory."""
        found = []
        there = self._ledger.uids()
        for uid, state in reported.items():
            if state is TaskState.EXITED:
                continue
            if uid not in there:
                if uid in self._placed and self._ledger.find(uid) is None:
                    found.append(self._ledger.settle_vanished(uid))
            elif state is TaskState.RUNNING and self._ledger.kept(uid):
                self._ledger.end_overdue(uid)
            else:
                seen = self._look_at(uid)
                if seen is None:
                    continue
                if state is TaskState.PULLING:
                    self._go_on(seen)
                if seen.state is not TaskState.STARTING:
                    found.append(seen)
        return found

    def _look_at(self, uid: TaskUid, *, shim_ended: bool = False) -> TaskSeen | None:
        """One task; a record that cannot be read is logged and must not end the watch."""
        try:
            return self._ledger.settle_unstarted(uid) if shim_ended else self._ledger.look(uid)
        except (OSError, ValueError, KeyError) as exc:
            _log.error("task %s cannot be looked at: %s", uid, exc)
            return None


def _take_watch_lock(root: Path) -> int:
    fd = take_lock(root / layout.WATCH_LOCK, HANDOVER_S)
    if fd is None:
        raise EngineError(f"another process already watches the tasks below {root}; stop it first")
    return fd
