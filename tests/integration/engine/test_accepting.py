"""A server that is closed while clients come: each is served or turned away, and none is left waiting."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from pai_backend.engine.local.accepting import TaskAcceptor
from pai_backend.engine.local.ssh_server import listen
from pai_backend.engine.local.ssh_session import TaskWorld
from pai_backend.testing.free_ports import free_port

pytestmark = pytest.mark.asyncio
LIMIT_S = 60
TURNS = range(6)  # of the loop between a client's coming and the close


class Hello(asyncio.Protocol):
    """Greets, and ends."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


@pytest.fixture
def no_garbage_is_looked_for() -> Iterator[None]:
    """As in a process that has little to do: a lost socket is closed by nobody."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
@pytest.mark.parametrize("turns", TURNS)
async def test_a_client_that_comes_while_the_server_closes_is_greeted_or_turned_away(
    no_garbage_is_looked_for: None, tmp_path: Path, family: socket.AddressFamily, turns: int
) -> None:
    bound = socket.socket(family)
    bound.bind(("127.0.0.1", 0) if family == socket.AF_INET else str(tmp_path / "socket"))
    acceptor = TaskAcceptor(bound, Hello)
    client = come(bound)
    for _ in range(turns):
        await asyncio.sleep(0)  # one turn of the loop, which is what is counted here
    acceptor.close()
    await acceptor.wait_closed()
    assert await all_said(client) in (b"hello", None)


@pytest.mark.parametrize("turns", TURNS)
async def test_an_ssh_server_that_is_closed_has_ended_every_connection(
    no_garbage_is_looked_for: None, tmp_path: Path, turns: int
) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    port = free_port()
    listener = await listen(TaskWorld("uid", tmp_path, {}), port, key, "", ())
    client = socket.create_connection(("127.0.0.1", port))
    client.setblocking(False)
    for _ in range(turns):
        await asyncio.sleep(0)
    await listener.aclose()
    said = await all_said(client)
    assert said is None or said.startswith(b"SSH-2.0-")


SHORT_OF_DESCRIPTORS = """
import asyncio, logging, os, resource, socket, sys
from pai_backend.engine.local.accepting import TaskAcceptor
from tests.integration.engine.test_accepting import Hello

async def main():
    logging.basicConfig()
    told, loop = asyncio.Queue(), asyncio.get_running_loop()
    loop.add_reader(0, lambda: told.put_nowait(os.read(0, 100)))
    bound = socket.create_server(("127.0.0.1", 0))
    acceptor = TaskAcceptor(bound, Hello)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.dup(1))
    except OSError:
        print(bound.getsockname()[1], flush=True)
    await told.get()
    for each in taken:
        os.close(each)
    await told.get()
    acceptor.close()

asyncio.run(main())
"""


async def test_a_client_is_served_when_descriptors_are_free_again() -> None:
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SHORT_OF_DESCRIPTORS, stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert server.stdin
    assert server.stdout
    assert server.stderr
    try:
        async with asyncio.timeout(LIMIT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(await server.stdout.readline()))
            assert b"no connection is accepted for 1 s: Too many open files" in await server.stderr.readline()
            server.stdin.write(b"go on\n")
            assert await reader.read() == b"hello"
            writer.close()
            server.stdin.write(b"end\n")
            assert await server.wait() == 0
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


def come(bound: socket.socket) -> socket.socket:
    """A client whose connection waits to be accepted."""
    client = socket.socket(bound.family)
    client.setblocking(False)
    client.connect_ex(bound.getsockname())
    return client


async def all_said(client: socket.socket) -> bytes | None:
    """What a client hears until its connection ends; None when it is refused. Raises TimeoutError."""
    try:
        async with asyncio.timeout(LIMIT_S):
            said = b""
            while more := await asyncio.get_running_loop().sock_recv(client, 1000):
                said += more
            return said
    except ConnectionError:
        return None
    finally:
        client.close()
