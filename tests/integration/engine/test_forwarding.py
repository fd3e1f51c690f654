"""A forwarded connection ends at both ends in whichever order its two directions end, and loses no byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from pai_backend.engine.local.forwarding import Forwarder
from pai_backend.engine.local.ssh_server import Jumps, TaskServer
from pai_backend.engine.local.ssh_session import TaskWorld
from pai_backend.testing.free_ports import free_port

pytestmark = pytest.mark.asyncio
LIMIT_S = 60
MUCH = b"x" * 5_000_000  # more than all buffers on the way hold

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server(TaskServer):
    """A task's, which lets everyone in."""

    def begin_auth(self, username: str) -> bool:
        return False


@pytest.fixture
def logins() -> set[asyncssh.SSHServerConnection]:
    """The server's ends of the logins that are open."""
    return set()


@pytest_asyncio.fixture
async def client(
    logins: set[asyncssh.SSHServerConnection], tmp_path: Path
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    task = TaskWorld("uid", tmp_path, {})
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def no_jump(_: str) -> asyncio.BaseProtocol:
        raise ValueError("no jump is expected")

    jumps = Jumps(no_jump)
    async with (
        asyncssh.listen(
            "127.0.0.1", 0, server_factory=lambda: Server(task, logins, jumps), server_host_keys=[key], encoding=None
        ) as listening,
        asyncssh.connect("127.0.0.1", listening.get_port(), known_hosts=None, config=None) as connection,
    ):
        yield connection


async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.readline()).upper())
    writer.close()


async def test_a_server_that_closes_first_ends_the_connection(
    client: asyncssh.SSHClientConnection, tmp_path: Path
) -> None:
    async with asyncio.timeout(LIMIT_S):
        by_port = await asyncio.start_server(answer_and_close, "127.0.0.1", 0)
        by_path = await asyncio.start_unix_server(answer_and_close, tmp_path / "s")
        async with by_port, by_path:
            port = by_port.sockets[0].getsockname()[1]
            for reader, writer in (
                await client.open_connection("127.0.0.1", port),
                await client.open_unix_connection(str(tmp_path / "s")),
            ):
                writer.write(b"hello\n")
                assert await reader.read() == b"HELLO\n"  # to its end: the server has closed
                writer.write_eof()
                await writer.channel.wait_closed()


async def test_what_cannot_be_connected_to_is_refused_with_the_reason(
    client: asyncssh.SSHClientConnection, tmp_path: Path
) -> None:
    with pytest.raises(asyncssh.ChannelOpenError, match="No such file"):
        await client.open_unix_connection(str(tmp_path / "nothing"))


@contextlib.asynccontextmanager
async def reached_from_the_task(
    client: asyncssh.SSHClientConnection, serve: Serve, place: str = ""
) -> AsyncIterator[str]:
    """A port of the task, or a socket at ``place``, behind which ``serve`` answers at the client's."""
    async with asyncio.timeout(LIMIT_S), await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        here = server.sockets[0].getsockname()[1]
        if place:
            await client.forward_remote_path_to_port(place, "127.0.0.1", here)
            yield place
        else:
            yield str((await client.forward_remote_port("127.0.0.1", 0, "127.0.0.1", here)).get_port())


async def opened(place: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A program's connection to what is listened on in the task."""
    return await (
        asyncio.open_connection("127.0.0.1", int(place)) if place.isdigit() else asyncio.open_unix_connection(place)
    )


async def nothing_left(logins: set[asyncssh.SSHServerConnection]) -> None:
    """Return when no channel of the login is open at the task's end. Raises TimeoutError with what is left."""
    (login,) = logins
    async with asyncio.timeout(LIMIT_S):
        while channels := list(login._channels.values()):
            await asyncio.gather(*(channel.wait_closed() for channel in channels))


@pytest.fixture(params=["port", "socket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the client listens in the task: a port of the system's choice, or this socket."""
    return str(tmp_path / "s") if request.param == "socket" else ""


async def test_all_is_read_of_a_server_of_the_clients_that_closes_first(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection], place: str
) -> None:
    read_before = asyncio.Event()

    async def say_much_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(MUCH)
        writer.close()
        read_before.set()

    async with reached_from_the_task(client, say_much_and_close, place) as where:
        reader, writer = await opened(where)
        await read_before.wait()
        assert await reader.read() == MUCH
        writer.close()
        await nothing_left(logins)


async def test_a_program_that_ends_its_data_first_gets_the_answer_and_the_end(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection], place: str
) -> None:
    """The client waits for the task's end to close, as programs do that know no second end."""

    async def count(reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        writer.write(b"%d" % len(await reader.read()))
        writer.write_eof()
        await writer.channel.wait_closed()

    async with asyncio.timeout(LIMIT_S):
        if place:
            await client.start_unix_server(lambda: count, place)
        else:
            place = str((await client.start_server(lambda *_: count, "127.0.0.1", 0)).get_port())
        reader, writer = await opened(place)
        writer.write(MUCH)
        writer.write_eof()
        assert await reader.read() == b"%d" % len(MUCH)
        await nothing_left(logins)


async def test_a_program_that_fell_over_leaves_nobody_waiting(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection]
) -> None:
    """It is gone before the client has taken the connection."""
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        ended.set()

    async with reached_from_the_task(client, wait) as where:
        with socket.create_connection(("127.0.0.1", int(where))) as program:
            program.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends it by a reset
            program.sendall(b"half a sen")
        await ended.wait()
        await nothing_left(logins)


async def test_a_server_of_the_clients_that_fell_over_ends_the_programs_connection(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection], place: str
) -> None:
    async def fall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with reached_from_the_task(client, fall, place) as where:
        reader, writer = await opened(where)
        with contextlib.suppress(ConnectionError):
            writer.write(MUCH)
            await reader.read()
        writer.close()
        await nothing_left(logins)


async def test_nothing_is_written_to_a_connection_that_is_lost() -> None:
    """asyncio would warn of each piece of what the client still has to say."""

    class Lost(asyncio.Transport):
        def is_closing(self) -> bool:
            return True

        def write(self, data: bytes | bytearray | memoryview) -> None:
            raise AssertionError("written")

    end = Forwarder()
    end.connection_made(Lost())
    end.write(b"much")


async def test_nobody_at_the_clients_end_is_the_end_of_the_connection(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection]
) -> None:
    nobody = free_port()
    async with asyncio.timeout(LIMIT_S):
        listening = await client.forward_remote_port("127.0.0.1", 0, "127.0.0.1", nobody)
        reader, writer = await opened(str(listening.get_port()))
        assert await reader.read() == b""
        writer.close()
        await nothing_left(logins)
        listening.close()
        await listening.wait_closed()
        with pytest.raises(ConnectionError):
            await opened(str(listening.get_port()))


async def test_a_socket_in_the_task_is_one_clients_alone_and_goes_with_it(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection], tmp_path: Path
) -> None:
    taken, own = tmp_path / "taken", tmp_path / "own"
    async with asyncio.timeout(LIMIT_S), await asyncio.start_unix_server(answer_and_close, taken):
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_path(str(taken), "/nowhere")
        reader, writer = await asyncio.open_unix_connection(taken)  # the program's that listened there before
        writer.write(b"still here\n")
        assert await reader.read() == b"STILL HERE\n"
        writer.close()
        listening = await client.forward_remote_path(str(own), "/nowhere")
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_path(str(own), "/nowhere")
        listening.close()
        await listening.wait_closed()
        assert not own.exists()
        await client.forward_remote_path(str(own), "/nowhere")
        assert own.exists()
        (login,) = logins
        client.close()
        await login.wait_closed()
        assert (own.exists(), taken.exists()) == (False, True)


async def test_what_is_no_address_is_refused_and_the_login_goes_on(
    client: asyncssh.SSHClientConnection, logins: set[asyncssh.SSHServerConnection]
) -> None:
    async with asyncio.timeout(LIMIT_S):
        for host, port in (("a..b", 80), ("a\0b", 80), ("127.0.0.1", 70_000), ("x" * 10_000, 80)):
            with pytest.raises(asyncssh.ChannelOpenError) as refused:
                await client.open_connection(host, port)
            assert refused.value.code == asyncssh.OPEN_CONNECT_FAILED
        for path in ("/a\0b", "/" + "x" * 10_000):
            with pytest.raises(asyncssh.ChannelOpenError):
                await client.open_unix_connection(path)
            with pytest.raises(asyncssh.ChannelListenError):
                await client.forward_remote_path(path, "/nowhere")
        with pytest.raises(asyncssh.ChannelListenError):
            await client.forward_remote_port("127.0.0.1", 70_000, "127.0.0.1", 80)
        listening = await client.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 80)
        assert listening.get_port() > 0
        await nothing_left(logins)
