"""The link of a kernel loses and doubles nothing, whatever breaks. What is sent into tasks runs on old Pythons."""

from __future__ import annotations

import ast
import asyncio
import json
import socket
import sys
from typing import Any

import pytest

from jupyter_pai.kernels.remote import task_program
from jupyter_pai.kernels.task.link import ACK, DATA, HELLO, Streams, frame, read_frame


class End:
    """One end of a link, and the values that it was told."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.changed = asyncio.Event()
        self.streams = Streams("a-link", self._told)

    async def _told(self, value: dict[str, Any]) -> None:
        self.told.append(value["number"])
        self.changed.set()

    async def use(self, connection: socket.socket) -> asyncio.StreamWriter:
        """Begin to use a connection as both real ends do."""
        reader, writer = await asyncio.open_connection(sock=connection)
        writer.write(self.streams.link.hello())
        kind, payload = await read_frame(reader)
        assert kind == HELLO
        self.serving = asyncio.create_task(self.streams.link.serve(reader, writer, json.loads(payload)["received"]))
        return writer

    async def has(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.told) < count:
                self.changed.clear()
                await self.changed.wait()


@pytest.mark.asyncio
async def test_values_arrive_once_and_in_order_over_connections_that_break() -> None:
    here, there = End(), End()
    sent = 0
    for _ in range(20):
        one, other = socket.socketpair()
        writers = await asyncio.gather(here.use(one), there.use(other))
        before = sent
        for _ in range(50):
            here.streams.link.tell({"number": sent})
            there.streams.link.tell({"number": -sent})
            sent += 1
        await there.has(before + 10)
        for writer in writers:
            writer.transport.abort()
        await asyncio.gather(here.serving, there.serving)
        here.streams.link.tell({"number": sent})  # while there is no connection
        there.streams.link.tell({"number": -sent})
        sent += 1
    one, other = socket.socketpair()
    writers = await asyncio.gather(here.use(one), there.use(other))
    await there.has(sent)
    await here.has(sent)
    assert there.told == list(range(sent))
    assert here.told == [-number for number in range(sent)]
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(here.serving, there.serving)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "sent", [frame(b"X", b""), DATA + b"\xff\xff\xff\xff", frame(ACK, (1 << 40).to_bytes(8, "big"))], ids=repr
)
async def test_an_end_that_talks_nonsense_is_left(sent: bytes) -> None:
    one, other = socket.socketpair()
    here = End()
    reader, writer = await asyncio.open_connection(sock=one)
    with other:
        other.sendall(sent)
        async with asyncio.timeout(60):
            await here.streams.link.serve(reader, writer, 0)
        assert here.told == []
    writer.close()


def test_what_is_sent_into_tasks_is_for_python_3_7_and_its_own_library() -> None:
    for name, text in task_program().items():
        tree = ast.parse(text, name, feature_version=(3, 7))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                known = {*sys.stdlib_module_names, "zmq"}  # which ipykernel brings
                assert {alias.name.partition(".")[0] for alias in node.names} <= known, name
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 1 or str(node.module).partition(".")[0] in sys.stdlib_module_names, name
