"""Output of a task's container from its kubelet, from a position on, through breaks and rotations.

What a kubelet rotates away is lost. Whether it still has the line that was read last tells what is new.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from pai_backend.engine.bundle import layout
from pai_backend.engine.kubernetes.client import ApiClient
from pai_backend.engine.kubernetes.downloads import download
from pai_backend.engine.kubernetes.failures import ApiNotFound, Malformed, Unreachable
from pai_backend.engine.kubernetes.logs.lines import Lines, Position
from pai_backend.engine.kubernetes.status.view import words
from pai_backend.model.ids import TaskUid

_log = logging.getLogger(__name__)

FOUND_S: Final = 20.0  # for the last line to come again in an answer that follows; else the log was rotated meanwhile
SILENCE_S: Final = 60.0  # in an answer that does not follow
_GONE: Final = (b"unable to retrieve container logs", b"no such file or directory", b"not found")
_NEVER: Final = b"unsupported log format"


class OutputSource:
    """The output of one task, read once: ``position`` says how far. ``pod`` is the path of its pod."""

    def __init__(self, client: ApiClient, uid: TaskUid, pod: str, position: Position) -> None:
        self.position = position
        self.read_out = False
        """Whether what was followed came to its end: a kubelet ends its answer when the container has ended."""
        self._client = client
        self._uid = uid
        self._path = f"{pod}/log"
        self._times: list[tuple[int, int]] = []

    def take_times(self) -> list[tuple[int, int]]:
        """When the output since the last call was written: offsets and milliseconds since 1970, one a second."""
        taken, self._times = self._times, []
        return taken

    async def rest(self) -> AsyncGenerator[bytes, None]:
        """What exists now.

        Raises Invalid while the container has not begun, ApiNotFound when it is gone, Malformed when its kubelet cannot
        read it at all, other ClusterErrors when it may later.
        """
        if self.position.stamp:
            lines = Lines(self.position, cut=True)
            async for data in self._answer(lines, ("sinceTime", self.position.since)):
                yield data
            if not lines.searching:
                return
            lines = Lines(self.position)  # its node's clock was set back, or it was rotated away
            async for data in self._answer(lines):
                yield data
            if not lines.searching:
                return
            _log.warning("the log of task %s was rotated before it was read; some of it may be lost", self._uid)
            # Of the new file nothing was read, also when nothing is in it yet: whatever comes in it is new.
            self.position = Position(self.position.end)
        async for data in self._answer(Lines(self.position)):
            yield data

    async def growing(self) -> AsyncGenerator[bytes, None]:
        """What exists, and what comes until the connection or the container ends. Raises as :meth:`rest`."""
        self.read_out = False
        if self.position.stamp:
            async for data in self.rest():
                yield data
        since = (("sinceTime", self.position.since),) if self.position.stamp else ()
        lines = Lines(self.position, growing=True, cut=bool(since))
        async for data in self._answer(lines, *since, ("follow", "true")):
            yield data
        self.read_out = not lines.searching

    async def _answer(self, lines: Lines, *query: tuple[str, str]) -> AsyncGenerator[bytes, None]:
        """The output in one answer. Raises ApiNotFound or Unreachable with the kubelet's closing words."""
        asked = [("container", layout.TASK_CONTAINER), ("timestamps", "true"), *query]
        silence_s = None if lines.growing else SILENCE_S
        async with download(self._client, self._path, asked, silence_s) as chunks, aclosing(chunks):
            while (data := await self._fresh(chunks, lines)) is not None:
                if data:
                    self.position = lines.position
                    self._times += lines.take_times()
                    yield data
        lines.finish()
        if lines.words:
            said = words(lines.words.decode("utf-8", "replace"))
            if _NEVER in lines.words:
                raise Malformed(f"the output of task {self._uid} cannot be read by its node: {said}")
            if any(gone in lines.words for gone in _GONE):
                raise ApiNotFound(f"the output of task {self._uid} is no longer on its node: {said}", status=404)
            raise Unreachable(f"the output of task {self._uid} cannot be read on its node: {said}", sent=True)

    async def _fresh(self, chunks: AsyncIterator[bytes], lines: Lines) -> bytes | None:
        """The next new output; None at the end, and where the last line does not come again in time: see ``rest``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOUND_S if lines.growing and lines.searching else None):
                async for chunk in chunks:
                    data = lines.feed(chunk)
                    if data or not lines.searching:
                        return data
        return None
