"""Non-blocking reads and writes of file descriptors on the event loop, byte-exact up to the last byte.

asyncio's own pipe transports drop what is buffered when a terminal hangs up (the reader then raises
EIO before it hands out what it has), so sessions read their descriptors themselves.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable

CHUNK_BYTES = 65536


async def read_some(fd: int) -> bytes:
    """The next bytes of a non-blocking descriptor; empty at its end, also when a terminal has hung up."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            await _ready(fd, loop.add_reader, loop.remove_reader)
        except OSError as exc:
            if exc.errno != errno.EIO:
                raise
            return b""


async def write_all(fd: int, data: bytes) -> bool:
    """Write everything to a non-blocking descriptor; False when its reader is gone."""
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await _ready(fd, loop.add_writer, loop.remove_writer)
        except OSError as exc:
            if exc.errno not in (errno.EIO, errno.EPIPE):
                raise
            return False
    return True


async def _ready(fd: int, add: Callable[..., None], remove: Callable[[int], bool]) -> None:
    """Wait until the descriptor is ready; safe to cancel."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    add(fd, wake)
    try:
        await future
    finally:
        remove(fd)
