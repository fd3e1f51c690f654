"""Raw bytes both ways once both sides have left HTTP: WebSocket frames, subprotocols and close codes stay exact."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tornado.iostream import IOStream, StreamClosedError

from pai_backend.access.proxy.frames import Frames

READ_BYTES = 65536


async def tunnel(
    client: IOStream,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    early: bytes,
    used: Callable[[], None] | None = None,
) -> None:
    """Pass bytes until either side ends, then close both. ``early`` came from the task already.

    Each direction waits for its receiver, so neither can fill the memory. ``used`` is called for what is no ping.
    """
    frames = Frames(), Frames()

    async def to_client() -> None:
        data = early or await reader.read(READ_BYTES)
        while data:
            if used is not None and frames[0].feed(data):
                used()
            await client.write(data)
            data = await reader.read(READ_BYTES)

    async def to_task() -> None:
        while True:
            data = await client.read_bytes(READ_BYTES, partial=True)
            if used is not None and frames[1].feed(data):
                used()
            writer.write(data)
            await writer.drain()

    ways = [asyncio.ensure_future(to_client()), asyncio.ensure_future(to_task())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        results = await asyncio.gather(*ways, return_exceptions=True)
        client.close()
        writer.close()
    for result in results:
        # That a side is gone is how tunnels end; anything else is a fault.
        if isinstance(result, Exception) and not isinstance(result, StreamClosedError | OSError):
            raise result
