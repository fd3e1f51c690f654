"""The output of a task as readers are given it: what is kept, then what its kubelet has beyond that.

So it is the same whether it is collected or not, and wherever it is read. Standard error is part of ``stdout``: a
kubelet tells the two apart only with a feature gate (v1.34: PodLogsQuerySplitStreams, alpha). Offsets count from the
first byte of all where the log was collected, else from the first byte that the kubelet still gives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from pai_backend.engine.base import LogStream, LogTime
from pai_backend.engine.kubernetes.failures import ApiNotFound, ClusterError, Invalid, Malformed
from pai_backend.engine.kubernetes.logs.kept import STREAM, Extent, KeptLog
from pai_backend.engine.kubernetes.logs.lines import Position
from pai_backend.engine.kubernetes.logs.recent_times import RecentTimes
from pai_backend.engine.kubernetes.logs.sources import Sources
from pai_backend.engine.local.logfiles import LogReader, times
from pai_backend.model.ids import TaskUid

LOOK_AGAIN_S: Final = (0.1, 2.0)  # between looks whether there is more, doubling; only while it is followed
_NOTHING: Final = Extent(0, Position(), complete=False)


class TaskLogs:
    """Logs of the tasks of a backend, in any process of it."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._recent = RecentTimes()

    async def read(self, uid: TaskUid, stream: LogStream, offset: int, *, follow: bool) -> AsyncGenerator[bytes, None]:
        """Output from byte ``offset`` on, as the interface has it. Raises KeyError for no such uid, ClusterErrors."""
        if stream is LogStream.STDERR or offset < 0:
            base, end = await self.extent(uid, stream)
            offset = max(base, end + offset) if offset < 0 else offset
        if stream is LogStream.STDERR:
            return
        reading, pause = _Reading(self._sources, self._recent, uid, offset), LOOK_AGAIN_S[0]
        while True:
            before = reading.offset
            async with aclosing(reading.round(follow=follow)) as pieces:
                async for data in pieces:
                    yield data
            if reading.done:
                return
            pause = LOOK_AGAIN_S[0] if reading.offset > before and not reading.broke else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_S[1])

    async def extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """(oldest byte, bytes there ever were) now. Raises KeyError for an unknown uid, ClusterErrors."""
        extent = await asyncio.to_thread(self._sources.kept(uid).look) or _NOTHING
        if extent is _NOTHING and not await self._sources.is_known(uid):
            raise KeyError(uid)
        if stream is LogStream.STDERR:
            return 0, 0
        source = await self._sources.kubelet(uid, extent.position)
        if not extent.complete:
            try:
                async with aclosing(source.rest()) as pieces:
                    async for _ in pieces:
                        pass
            except (Invalid, Malformed):
                pass  # it has not begun, or its kubelet will never read it
            except ApiNotFound:  # the rest was kept before its pod was removed
                now = await asyncio.to_thread(self._sources.kept(uid).look)
                extent = now or extent
        return extent.base, max(source.position.end, extent.position.end)

    async def times(self, uid: TaskUid, stream: LogStream, start: int, end: int) -> list[LogTime]:
        """When the lines between two bytes were written, as the interface has it. Raises KeyError, ClusterErrors."""
        kept = self._sources.kept(uid)
        extent = await asyncio.to_thread(kept.look) or _NOTHING
        if extent is _NOTHING and not await self._sources.is_known(uid):
            raise KeyError(uid)
        if stream is LogStream.STDERR:
            return []
        recent = self._recent.of(uid, max(start, extent.position.end), end)
        found = await asyncio.to_thread(times, kept.directory, STREAM, start, min(end, extent.position.end))
        if recent is not None:
            found += recent
        elif not extent.complete and end > extent.position.end:
            source = await self._sources.kubelet(uid, extent.position)
            with contextlib.suppress(Invalid, Malformed, ApiNotFound):  # it tells nothing of what is not kept
                async with aclosing(source.rest()) as pieces:
                    async for _ in pieces:
                        if source.position.end >= end:
                            break
            found += source.take_times()
        begun = max((place for place, (offset, _) in enumerate(found) if offset <= start), default=0)
        return [LogTime.of(max(offset, start), at) for offset, at in found[begun:] if max(offset, start) < end]


class _Reading:
    """One reader's way through a log. ``done``: nothing more can come, or is wanted. ``broke``: it was cut off."""

    def __init__(self, sources: Sources, recent: RecentTimes, uid: TaskUid, offset: int) -> None:
        self.offset = offset
        self._recent = recent
        self.done = self.broke = False
        self._sources = sources
        self._uid = uid
        self._kept = sources.kept(uid)
        self._reached = Position()

    async def round(self, *, follow: bool) -> AsyncGenerator[bytes, None]:
        """What is kept, then what the kubelet has, or with ``follow`` gives until the connection ends."""
        extent = await asyncio.to_thread(self._kept.look) or _NOTHING
        over = extent.complete or await self._is_over(known=extent is not _NOTHING)
        async with aclosing(self._from_files(self._kept, extent)) as pieces:
            async for data in pieces:
                yield data
        self.done = extent.complete
        if self.done:
            return
        if extent.position.end >= self._reached.end:
            self._reached = extent.position
        source = await self._sources.kubelet(self._uid, self._reached)
        pieces = source.growing() if follow and not over else source.rest()
        self.done, self.broke = over or not follow, False
        try:
            async with aclosing(pieces):
                async for data in pieces:
                    self._recent.add(self._uid, source.position.end, len(data), source.take_times())
                    fresh = data[max(0, self.offset - (source.position.end - len(data))) :]
                    self.offset += len(fresh)
                    if fresh:
                        yield fresh
        except (Invalid, Malformed):
            pass  # the container has not begun, or its kubelet will never read it
        except ApiNotFound:
            self.done = self.done and not await self._completed()
        except ClusterError:
            if not follow:
                raise
            self.done, self.broke = False, True
        self._reached = source.position

    async def _from_files(self, kept: KeptLog, extent: Extent) -> AsyncGenerator[bytes, None]:
        self.offset = max(self.offset, extent.base)
        reader = LogReader(STREAM, self.offset)
        while self.offset < extent.position.end:
            data = await asyncio.to_thread(reader.read, kept.directory)
            if not data:
                return
            data = data[: extent.position.end - self.offset]
            self.offset += len(data)
            yield data

    async def _completed(self) -> bool:
        """Whether the rest was kept, while we looked, before the pod was removed."""
        extent = await asyncio.to_thread(self._kept.look)
        return extent is not None and extent.complete and extent.position.end > self.offset

    async def _is_over(self, *, known: bool) -> bool:
        if not known and not await self._sources.is_known(self._uid):
            raise KeyError(self._uid)
        return await self._sources.is_over(self._uid)
