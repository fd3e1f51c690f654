"""A forwarded connection ends for the client in whichever order its two directions end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from pai_backend.engine.local.forwarding import connected_to, connected_to_socket

pytestmark = pytest.mark.asyncio
LIMIT_S = 30


class Server(asyncssh.SSHServer):
    """Lets everyone in, and forwards as a task's server does."""

    def begin_auth(self, username: str) -> bool:
        return False

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> object:
        return connected_to(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> object:
        return connected_to_socket(dest_path)


@pytest_asyncio.fixture
async def client() -> AsyncIterator[asyncssh.SSHClientConnection]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with (
        asyncssh.listen("127.0.0.1", 0, server_factory=Server, server_host_keys=[key]) as listening,
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
