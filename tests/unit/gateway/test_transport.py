"""Transports that deliver what was written before they close, and hold back when they are full."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pai_backend.access.gateway import transport as module
from pai_backend.access.gateway.transport import FlushingTransport, StreamTransport
from pai_backend.engine.base import Connection

pytestmark = pytest.mark.asyncio

BIG = b"z" * 20_000_000  # more than loopback's socket buffers hold


class Recorder(asyncio.Protocol):
    """A protocol that keeps what happens to it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.events: list[str] = []
        self.lost = asyncio.Event()
        self.got = asyncio.Event()
        self.resumed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.got.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.lost.set()

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")
        self.resumed.set()


class Counting(asyncio.Transport):
    """A transport that notes each piece it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._closed
        self.pieces.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True


Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[tuple[Pair, Pair]]:
    """Both ends of one loopback connection: (near, far)."""
    arrived: asyncio.Future[Pair] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda r, w: arrived.set_result((r, w)), "127.0.0.1", 0)
    near = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    far = await arrived
    yield near, far
    server.close()
    for _, writer in (near, far):
        writer.close()


def flushing_transport(writer: asyncio.StreamWriter) -> FlushingTransport:
    assert isinstance(writer.transport, asyncio.Transport)
    return FlushingTransport(writer.transport)


async def test_closing_delivers_what_was_written(pair: tuple[Pair, Pair]) -> None:
    near, (far_reader, _) = pair
    recorder = Recorder()
    stream = StreamTransport(Connection(*near), recorder)
    stream.start()
    stream.write(BIG)
    stream.abort()
    assert stream.is_closing()
    stream.write(b"too late")
    assert await asyncio.wait_for(far_reader.read(-1), 60) == BIG


async def test_a_socket_transport_delivers_too(pair: tuple[Pair, Pair]) -> None:
    (_, near_writer), (far_reader, _) = pair
    flushing = flushing_transport(near_writer)
    flushing.write(BIG)
    flushing.abort()
    flushing.abort()
    flushing.write(b"too late")
    assert await asyncio.wait_for(far_reader.read(-1), 60) == BIG


async def test_what_is_gathered_leaves_in_one_piece_at_the_end_of_the_block() -> None:
    inner = Counting()
    flushing = FlushingTransport(inner)
    with module.gathered(flushing):
        flushing.write(b"one ")
        flushing.write(b"piece")
        assert inner.pieces == []
    assert inner.pieces == [b"one piece"]
    flushing.write(b"later")
    assert inner.pieces == [b"one piece"]
    await asyncio.sleep(0)
    assert inner.pieces == [b"one piece", b"later"]
    with module.gathered(flushing):
        flushing.write(b"last words")
        flushing.close()
        flushing.write(b"too late")
    assert inner.pieces == [b"one piece", b"later", b"last words"]


async def test_a_peer_that_takes_nothing_is_given_up(pair: tuple[Pair, Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_S", 0.05)
    (_, near_writer), (far_reader, _) = pair
    flushing = flushing_transport(near_writer)
    flushing.write(BIG)
    flushing.close()
    await asyncio.wait_for(near_writer.wait_closed(), 60)
    assert len(await asyncio.wait_for(far_reader.read(-1), 60)) < len(BIG)


async def test_the_protocol_is_paused_while_the_stream_is_full(pair: tuple[Pair, Pair]) -> None:
    near, (far_reader, _) = pair
    recorder = Recorder()
    stream = StreamTransport(Connection(*near), recorder)
    stream.start()
    stream.write(BIG)
    assert recorder.events == ["made", "pause"]
    await asyncio.wait_for(far_reader.readexactly(len(BIG)), 60)
    await asyncio.wait_for(recorder.resumed.wait(), 60)
    stream.close()


async def test_paused_reading_holds_the_sender_back(pair: tuple[Pair, Pair]) -> None:
    near, (_, far_writer) = pair
    recorder = Recorder()
    stream = StreamTransport(Connection(*near), recorder)
    stream.start()
    stream.pause_reading()
    far_writer.write(BIG)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(far_writer.drain(), 0.3)
    assert not recorder.data
    stream.resume_reading()
    await asyncio.wait_for(far_writer.drain(), 60)
    async with asyncio.timeout(60):
        while len(recorder.data) < len(BIG):
            recorder.got.clear()
            await recorder.got.wait()
    stream.close()


async def test_what_came_before_there_was_a_protocol_comes_first(pair: tuple[Pair, Pair]) -> None:
    near, (_, far_writer) = pair
    far_writer.write(b"early ")
    async with asyncio.timeout(60):
        assert await near[0].readexactly(1) == b"e"
    recorder = Recorder()
    stream = StreamTransport(Connection(*near), recorder)
    stream.start()
    stream.pause_reading()
    far_writer.write(b"and late")
    far_writer.close()
    async with asyncio.timeout(60):
        await recorder.got.wait()
        assert bytes(recorder.data) == b"arly "
        stream.resume_reading()
        await recorder.lost.wait()
    assert bytes(recorder.data) == b"arly and late"


async def test_streams_are_let_go_and_their_transport_lives_on() -> None:
    arrived: asyncio.Future[Pair] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda r, w: arrived.set_result((r, w)), "127.0.0.1", 0)
    near = Connection(*await asyncio.open_connection(*server.sockets[0].getsockname()[:2]))
    far_reader, far_writer = await arrived
    gone = weakref.ref(near.reader), weakref.ref(near.writer)
    recorder = Recorder()
    stream = StreamTransport(near, recorder)
    stream.start()
    del near
    far_writer.write(b"first")
    await asyncio.wait_for(recorder.got.wait(), 60)
    gc.collect()
    assert [each() for each in gone] == [None, None]
    stream.write(b"still here")
    assert await asyncio.wait_for(far_reader.readexactly(10), 60) == b"still here"
    stream.close()
    assert await asyncio.wait_for(far_reader.read(), 60) == b""
    far_writer.close()
    server.close()


async def test_the_far_end_closing_is_a_loss(pair: tuple[Pair, Pair]) -> None:
    near, (_, far_writer) = pair
    recorder = Recorder()
    stream = StreamTransport(Connection(*near), recorder)
    stream.start()
    far_writer.write(b"last words")
    far_writer.close()
    await asyncio.wait_for(recorder.lost.wait(), 60)
    assert bytes(recorder.data) == b"last words"
    stream.close()


class Draining(asyncio.Transport):
    """A transport whose write buffer is so full at each look."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self._sizes, self._closed = sizes, False
        self.aborted, self.empty = asyncio.Event(), asyncio.Event()

    def get_write_buffer_size(self) -> int:
        size = self._sizes.pop(0)
        if not size:
            self.empty.set()
        return size

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True

    def abort(self) -> None:
        self.aborted.set()


@pytest.mark.parametrize(
    ("sizes", "flush_s", "delivered"),
    [([90, 80, 70, 60, 0], 60.0, True), ([90, 80, 80], 60.0, False), ([90, 80], 0.0, False)],
    ids=["takes some at each look", "stalls", "is too slow in all"],
)
async def test_a_closed_connection_is_given_time_while_the_other_end_takes_some(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], flush_s: float, delivered: bool
) -> None:
    monkeypatch.setattr(module, "STALL_S", 0.01)
    monkeypatch.setattr(module, "FLUSH_S", flush_s)
    transport = Draining(list(sizes))
    module.close_flushed(transport)
    async with asyncio.timeout(60):
        await (transport.empty if delivered else transport.aborted).wait()
    assert transport.aborted.is_set() != delivered


async def test_streams_of_a_python_that_keeps_their_transport_elsewhere_live_as_long_as_it(
    pair: tuple[Pair, Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere:
        transport = object()

    assert not module._forget_transport(Elsewhere())  # type: ignore[arg-type]  # what is looked at of a writer
    monkeypatch.setattr(module, "_forget_transport", lambda _: False)
    (near, near_writer), (_, far) = pair
    recorder = Recorder()
    transport = StreamTransport(Connection(near, near_writer), recorder)
    transport.start()
    assert transport._streams is not None
    far.write(b"early")
    await recorder.got.wait()
    assert transport._streams is not None, "they would close what they have when they are collected"
    far.write(b" and late")
    async with asyncio.timeout(60):
        while recorder.data != b"early and late":
            recorder.got.clear()
            await recorder.got.wait()
    assert not transport.is_closing()
