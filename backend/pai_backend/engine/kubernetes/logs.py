"""The output of tasks: from the kubelet while there is a pod, from a file of ours when it is forgotten.

A kubelet does not tell standard error from standard output unless a feature gate of the cluster is on (v1.34:
PodLogsQuerySplitStreams, alpha), so both are one log here, and ``stderr`` is empty. Offsets count from the first byte
that the kubelet still gives: it keeps the output since its last rotation (``containerLogMaxSize``, 10 MiB by default).
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from pai_backend.engine.base import LogStream
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Client
from pai_backend.engine.kubernetes.downloads import CHUNK, download
from pai_backend.engine.kubernetes.ending import find
from pai_backend.engine.kubernetes.failures import Invalid, NotFound, Unreachable
from pai_backend.engine.kubernetes.objects import Object, slim_pod
from pai_backend.engine.kubernetes.places import Kind, Places
from pai_backend.engine.kubernetes.pods import layout
from pai_backend.engine.kubernetes.status.view import NotATask, view_of
from pai_backend.model.ids import TaskUid

_REMOVED = re.compile(rb"unable to retrieve container logs for [a-z0-9-]+://[0-9a-f]+")
"""What a kubelet answers in the place of a log, as if all were well, when it has removed the container."""
LOOK_AGAIN_S = (0.1, 2.0)  # between looks whether a container has begun, doubling; only while somebody follows its log


class TaskLogs:
    """Logs of the tasks of one namespace; those of forgotten tasks are files in ``kept``."""

    def __init__(self, client: Client, calls: Calls, places: Places, kept: Path) -> None:
        self._client = client
        self._calls = calls
        self._places = places
        self._kept = kept

    async def read(self, uid: TaskUid, stream: LogStream, offset: int, *, follow: bool) -> AsyncIterator[bytes]:
        """Output from byte ``offset`` on, as the interface has it. Raises KeyError for an unknown uid."""
        if stream is LogStream.STDERR or offset < 0:
            size = (await self.extent(uid, stream))[1]
            offset = max(0, size + offset) if offset < 0 else offset
        if stream is LogStream.STDERR:
            return
        pause = LOOK_AGAIN_S[0]
        while True:
            before = offset
            async for chunk in self._once(uid, offset, follow=follow):
                offset += len(chunk)
                yield chunk
            if not follow or await self._is_over(uid):
                # What was written between the last byte and the end, where the connection was cut.
                async for chunk in self._once(uid, offset, follow=False):
                    yield chunk
                return
            pause = LOOK_AGAIN_S[0] if offset > before else min(2 * pause, LOOK_AGAIN_S[1])
            await asyncio.sleep(pause)

    async def extent(self, uid: TaskUid, stream: LogStream) -> tuple[int, int]:
        """(0, bytes there are now). Raises KeyError for an unknown uid, ClusterErrors."""
        size = 0
        async for chunk in self._once(uid, 0, follow=False):
            size += len(chunk)
        return 0, 0 if stream is LogStream.STDERR else size

    async def keep(self, uid: TaskUid, *, follow: bool = False) -> bool:
        """Copy the log into a file, durably, unless that was done; with ``follow`` up to the task's end.

        False when there is none to copy, because its container has not begun or is gone. Raises ClusterErrors, OSError.
        """
        path = self._file(uid)
        if await asyncio.to_thread(path.exists):
            return True
        await asyncio.to_thread(self._kept.mkdir, mode=0o700, parents=True, exist_ok=True)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        try:
            with await asyncio.to_thread(_create, draft) as file:
                if not await self._copy(uid, file, follow=follow):
                    return False
                await asyncio.to_thread(_finish, file, draft, path)
            return True
        finally:
            await asyncio.to_thread(draft.unlink, missing_ok=True)

    async def _copy(self, uid: TaskUid, file: BinaryIO, *, follow: bool) -> bool:
        size, pause, there = 0, LOOK_AGAIN_S[0], False
        while True:
            try:
                async for chunk in self._live(uid, size, follow=follow):
                    size += len(chunk)
                    await asyncio.to_thread(file.write, chunk)
                there = True
            except Unreachable:
                if not follow:
                    raise
            except NotFound:
                return there
            except Invalid:
                pass  # it has not begun, and its node may begin it still
            if not follow or await self._is_over(uid):
                return there
            await asyncio.sleep(pause)
            pause = min(2 * pause, LOOK_AGAIN_S[1])

    async def _once(self, uid: TaskUid, offset: int, *, follow: bool) -> AsyncIterator[bytes]:
        """What there is from ``offset`` on, and what comes until the connection ends. Raises KeyError."""
        path = self._file(uid)
        if await asyncio.to_thread(path.exists):
            async for chunk in _file_chunks(path, offset):
                yield chunk
            return
        if await self._pod(uid) is None:
            if await find(self._calls, self._places.one(Kind.SECRET, naming.task_name(uid))) is None:
                raise KeyError(uid)
            return
        try:
            async for chunk in self._live(uid, offset, follow=follow):
                yield chunk
        except (Invalid, NotFound):
            return  # the container has not begun, or is gone
        except Unreachable:
            if not follow:
                raise

    async def _live(self, uid: TaskUid, offset: int, *, follow: bool) -> AsyncIterator[bytes]:
        """From the kubelet. Raises Invalid while the container has not begun, NotFound when it is gone."""
        path = f"{self._places.one(Kind.POD, naming.task_name(uid))}/log"
        query = [("container", layout.TASK_CONTAINER), *([("follow", "true")] if follow else [])]
        skip, first = offset, True
        async with download(self._client, path, query) as chunks:
            async for chunk in chunks:
                if first and _REMOVED.fullmatch(chunk):
                    raise NotFound(f"the container of task {uid} is no longer on its node", status=404)
                first = False
                if skip < len(chunk):
                    yield chunk[skip:]
                skip = max(0, skip - len(chunk))

    async def _is_over(self, uid: TaskUid) -> bool:
        pod = await self._pod(uid)
        if pod is None:
            return True
        try:
            view = view_of(slim_pod(pod))
        except NotATask:
            return True
        return view.over or view.task.ended is not None or (view.deleted_at is not None and not view.node)

    async def _pod(self, uid: TaskUid) -> Object | None:
        return await find(self._calls, self._places.one(Kind.POD, naming.task_name(uid)))

    def _file(self, uid: TaskUid) -> Path:
        return self._kept / f"{naming.task_name(uid)}.log"


async def _file_chunks(path: Path, offset: int) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        await asyncio.to_thread(file.seek, offset)
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


def _create(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _finish(file: BinaryIO, draft: Path, path: Path) -> None:
    """Give a written file its name so that it is there whole or not at all, also after a power cut."""
    file.flush()
    os.fsync(file.fileno())
    os.rename(draft, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
