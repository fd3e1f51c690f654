"""Logins through a proxy of the operator's, which says for whom it connects."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.ssh_world import World, eventually, make_world, run

pytestmark = pytest.mark.asyncio

LOOPBACK = (ipaddress.ip_network("127.0.0.1/32"),)
CLIENT = "203.0.113.7"  # RFC 5737: of no real network


def version_1(address: str) -> bytes:
    return f"PROXY TCP4 {address} 127.0.0.1 40001 22\r\n".encode()


def version_2(address: str) -> bytes:
    body = ipaddress.ip_address(address).packed + bytes([127, 0, 0, 1]) + struct.pack("!HH", 40001, 22)
    return b"\r\n\r\n\x00\r\nQUIT\n" + bytes([0x21, 0x11]) + struct.pack("!H", len(body)) + body


@asynccontextmanager
async def proxy(port: int, header: bytes) -> AsyncIterator[int]:
    """A proxy before that port; gives its own."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        for byte in header:  # as a network may cut it
            outer.write(bytes([byte]))
            await asyncio.sleep(0)
        await asyncio.gather(pump(reader, outer), pump(inner, writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def through(world: World, port: int, *args: str) -> str:
    """What ssh prints for this command through that port."""
    argv = [str(port) if word == str(world.port) else word for word in world.argv(*args)]
    known = world.path / "known_hosts"
    known.write_text(known.read_text().replace(str(world.port), str(port)))
    done = await run(argv)
    known.write_text(known.read_text().replace(str(port), str(world.port)))
    return done.stdout.decode() or done.stderr


@pytest.mark.parametrize("header", [version_1, version_2])
async def test_a_login_counts_for_the_client_that_the_proxy_names(
    tmp_path: Path, header: Callable[[str], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pai_backend")
    async with make_world(tmp_path, proxies=LOOPBACK) as world, proxy(world.port, header(CLIENT)) as port:
        assert await through(world, port, "echo in") == "in\n"
        await eventually(lambda: f"from={CLIENT}:40001" in caplog.text, "the client's address is not logged")


async def test_silent_clients_of_a_proxy_are_many_sources(tmp_path: Path) -> None:
    """Without their addresses one client could fill the room that the proxy's address has."""
    limits: dict[str, Any] = {"max_unauthenticated_per_source": 4, "login_timeout_s": 600.0}
    async with make_world(tmp_path, proxies=LOOPBACK, **limits) as world:
        strangers = []
        for _ in range(20):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(version_1(CLIENT))
            strangers.append((reader, writer))
        async with asyncio.timeout(60):
            for reader, _ in strangers[: 20 - 4]:
                assert (await reader.read()).startswith(b"SSH-2.0-")  # to its end
            async with proxy(world.port, version_1("203.0.113.8")) as port:
                assert await through(world, port, "echo in") == "in\n"
            for reader, writer in strangers[-4:]:
                assert await reader.readline()  # still there, and greeted
                writer.close()


async def test_a_proxy_that_names_nobody_is_let_in_as_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pai_backend")
    async with make_world(tmp_path, proxies=LOOPBACK) as world, proxy(world.port, b"PROXY UNKNOWN\r\n") as port:
        assert await through(world, port, "echo in") == "in\n"
        await eventually(lambda: "from=127.0.0.1:" in caplog.text, "the proxy's address is not logged")


async def test_a_proxy_without_a_header_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with make_world(tmp_path, proxies=LOOPBACK) as world:
        assert "losed" in (await world.ssh("echo in")).stderr or "reset" in (await world.ssh("echo in")).stderr
        assert "without a PROXY header" in caplog.text


async def test_nobody_else_may_name_a_client(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pai_backend")
    others = (ipaddress.ip_network("10.0.0.0/8"),)
    async with make_world(tmp_path, proxies=others) as world:
        assert (await world.ssh("echo in")).stdout == b"in\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(version_1(CLIENT))
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()
    assert CLIENT not in caplog.text
