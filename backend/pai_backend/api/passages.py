"""A task's log as anybody is shown it: with its job's secrets covered, at the log's own offsets.

A byte is covered or not by what stands around it, so reading begins a little before the first byte that is wanted, and
the end is held back where more output might still complete a secret.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from pai_backend.api.large_texts import in_turn
from pai_backend.engine.base import Engine, LogStream
from pai_backend.model.ids import TaskUid
from pai_backend.model.scrub import Scrubber, Scrubbing

LARGE_BYTES = 8_192  # more than this is scrubbed in a thread: it may take over 5 ms


@dataclass(frozen=True)
class LogPassage:
    """A part of a log: one stream of a task from a byte on; a negative offset counts from the end.

    ``follow``: until the task has ended and all is read. ``over``: the task has ended, so that nothing is held back.
    """

    uid: TaskUid
    stream: LogStream
    offset: int
    follow: bool = False
    over: bool = False


async def read_passage(
    engine: Engine, passage: LogPassage, scrubber: Scrubber
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The passage in pieces, scrubbed, each with the offset of its first byte; the first one may be empty.

    What rotation has taken is skipped. Raises KeyError for a task that the engine does not know.
    """
    oldest, end = await engine.log_extent(passage.uid, passage.stream)
    first = passage.offset if passage.offset >= 0 else end + passage.offset
    while True:
        first = max(first, oldest)
        start = max(first - scrubber.reach, oldest)
        async with aclosing(_from(engine, passage, start)) as pieces:
            piece = await anext(pieces, None)
            oldest, _ = await engine.log_extent(passage.uid, passage.stream)
            if oldest > start:  # rotation took the beginning meanwhile, so that the pieces begin somewhere else
                continue
            yield first, b""
            work, at = scrubber.begin(cut=start == oldest > 0), start
            while piece is not None:
                shown = await _fed(work, piece)
                if at + len(shown) > first:
                    yield max(at, first), shown[max(0, first - at) :]
                at += len(shown)
                piece = await anext(pieces, None)
            if passage.follow or passage.over:
                yield max(at, first), work.end()[max(0, first - at) :]
            return


async def _from(engine: Engine, passage: LogPassage, start: int) -> AsyncGenerator[bytes, None]:
    pieces: AsyncIterator[bytes] = engine.logs(passage.uid, passage.stream, start, passage.follow)
    async for piece in pieces:
        yield piece


async def _fed(work: Scrubbing, piece: bytes) -> bytes:
    if len(piece) > LARGE_BYTES:
        return await in_turn(partial(work.feed, piece))
    return work.feed(piece)
