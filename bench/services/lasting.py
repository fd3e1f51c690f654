"""What lasts: WebSockets that talk, others on which nothing happens, and files of a gigabyte."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bench.figures import Figure, percentile
from bench.services.site import Proxy, beside_one

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TALKING, MESSAGES = 32, 200
IDLE = 2000
SLOW_REQUESTS = 200
TICK_S = 0.01  # in which the system counts CPU time
BULK = 1 << 30
PIECE = bytes(1 << 20)
_FRAME = b"\x82\xe4" + bytes(4) + b"x" * 100  # a binary message of 100 bytes with an empty mask
_ASKS = b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"


async def measure() -> list[Figure]:
    """All figures. Raises CannotRun where configurable-http-proxy is not installed."""
    async with beside_one() as (ours, peer, direct):
        return [
            await _beside("socket_cpu", _message_us, ours, peer, "us a message"),
            Figure("socket_memory", await _idle_kib(ours), f"KiB, {IDLE} WebSockets on which nothing happens"),
            await _beside("down", _down_mb_s, ours, peer, "MB/s"),
            await _beside("up", _up_mb_s, ours, peer, "MB/s"),
            await _beside("first_byte", _first_byte_ms, ours, direct, "ms, of an answer that takes 10"),
        ]


async def _beside(
    name: str, measure: Callable[[Proxy], Awaitable[float]], ours: Proxy, peer: Proxy, unit: str
) -> Figure:
    """Three rounds in turn, after one that does not count; the best of each."""
    rounds = [(await measure(ours), await measure(peer)) for _ in range(4)][1:]
    best = max if unit.startswith("MB") else min
    own, other = best(each[0] for each in rounds), best(each[1] for each in rounds)
    return Figure(name, 100 * own / other, f"{unit}: {ours.name} {own:.1f}, {peer.name} {other:.1f}")


async def _message_us(proxy: Proxy) -> float:
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(_socket(proxy)) for _ in range(TALKING)]
        before = proxy.cpu_s()
        await asyncio.gather(*(_talk(*each) for each in opened))
        return 1e6 * max(proxy.cpu_s() - before, TICK_S) / (TALKING * MESSAGES)


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(MESSAGES):
        writer.write(_FRAME)
        assert await reader.readexactly(len(_FRAME)) == _FRAME


async def _idle_kib(proxy: Proxy) -> float:
    """Memory of the process for each WebSocket, when all are open and have said something once."""
    async with AsyncExitStack() as stack:
        for _ in range(IDLE // 10):  # of what comes with the first ones
            await _talk_once(*await stack.enter_async_context(_socket(proxy)))
        before = proxy.process.memory_full_info().uss
        for _ in range(IDLE):
            await _talk_once(*await stack.enter_async_context(_socket(proxy)))
        return float(proxy.process.memory_full_info().uss - before) / IDLE / 1024


async def _talk_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(_FRAME)
    assert await reader.readexactly(len(_FRAME)) == _FRAME


async def _down_mb_s(proxy: Proxy) -> float:
    async with _connection(proxy) as (reader, writer):
        writer.write(_asking(proxy, b"GET", b"/down/%d" % BULK))
        await _head(reader)
        left, begun = BULK, time.perf_counter()
        while left:
            piece = await reader.read(len(PIECE))
            assert piece, "the answer broke off"
            left -= len(piece)
        return BULK / 1e6 / (time.perf_counter() - begun)


async def _up_mb_s(proxy: Proxy) -> float:
    async with _connection(proxy) as (reader, writer):
        writer.write(_asking(proxy, b"POST", b"/up/%d" % BULK, b"Content-Length: %d\r\n" % BULK))
        begun = time.perf_counter()
        for _ in range(BULK // len(PIECE)):
            writer.write(PIECE)
            await writer.drain()
        await _head(reader)
        return BULK / 1e6 / (time.perf_counter() - begun)


async def _first_byte_ms(proxy: Proxy) -> float:
    """Median, on a connection that is open."""
    taken = []
    async with _connection(proxy) as (reader, writer):
        for _ in range(SLOW_REQUESTS):
            begun = time.perf_counter()
            writer.write(_asking(proxy, b"GET", b"/slow"))
            await reader.readexactly(1)
            taken.append(time.perf_counter() - begun)
            await _head(reader)
    return 1000 * percentile(taken, 0.5)


def _asking(proxy: Proxy, method: bytes, path: bytes, lines: bytes = b"", connection: bytes = b"keep-alive") -> bytes:
    """The proxy's own request, with another method and path."""
    head = proxy.request.replace(b"GET / ", method + b" " + path + b" ", 1)
    return head.replace(b"Connection: keep-alive\r\n", b"Connection: " + connection + b"\r\n" + lines)


async def _head(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"1.1 200 " in head or b"1.1 101 " in head, head
    return head


@asynccontextmanager
async def _connection(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=len(PIECE))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@asynccontextmanager
async def _socket(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with _connection(proxy) as (reader, writer):
        writer.write(_asking(proxy, b"GET", b"/socket", _ASKS, b"Upgrade"))
        await _head(reader)
        yield reader, writer
