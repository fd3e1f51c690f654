"""Clients that break rules or only take up room: nobody else notices, and memory stays flat."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import psutil
import pytest
import pytest_asyncio
from asyncssh.constants import MSG_GLOBAL_REQUEST
from asyncssh.packet import Boolean, MPInt, SSHPacket, String

from pai_backend.access.gateway.joined import relay
from pai_backend.access.gateway.joined.front import JoinedClient
from tests.support.ssh_world import World, eventually, login, make_world, write_key

pytestmark = pytest.mark.asyncio

MANY = 10_000
NOT_A_MESSAGE = 192  # of those for private use (RFC 4250 §4.1.1)
MOST_GROWTH_BYTES = 24_000_000
"""Of 10,000 strangers of whom 64 at a time find room, after the first 200."""


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, login_timeout_s=20) as made:
        yield made


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """All that the gateway says to a client before it hangs up."""
    async with asyncio.timeout(60):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize(
    "bytes_",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00" * 20_000,
        b"SSH-1.5-old\r\n",
        b"SSH-2.0-" + b"x" * 5000 + b"\r\n",
        b"SSH-2.0-\xff\xfe\x1b[2J\r\n" + b"\x00" * 100,
        b"SSH-2.0-ok\r\n" + b"\xff" * 64,
        b"SSH-2.0-ok\r\n" + b"\x00\x00\x00\x0c\x04\x14" + b"\x00" * 100,
        b"SSH-2.0-ok\r\n" + os.urandom(5000),
    ],
    ids=["http", "zeros", "ssh 1", "long version", "version of escapes", "huge packet", "kexinit cut short", "noise"],
)
async def test_garbage_ends_its_own_connection_only(
    world: World, bytes_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with login(world) as good:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(bytes_)
        if writer.can_write_eof():
            writer.write_eof()
        answer = await _answer(reader)
        writer.close()
        assert answer == b"" or answer.startswith(b"SSH-2.0-OpenSSH_9.9 jupyter-pai-gateway")
        assert (await good.run("echo in")).stdout == "in\n"
    assert "\x1b" not in caplog.text


class _Offer(asyncssh.SSHKeyPair):
    """A key pair whose halves are whatever one likes."""

    def __init__(self, kind: bytes, data: bytes) -> None:
        super().__init__(kind, kind, (kind,), (kind,), data, b"")

    def sign(self, data: bytes) -> bytes:
        """A signature that is none."""
        return String(self.sig_algorithm) + String(bytes(64))


NAMES = {
    "10 kB": "x" * 10_000,
    "1 kB": "x" * 1023,
    "nul": "demo\x00",
    "two lines": "demo\nroot",
    "escapes": "\x1b[2J\x1b]0;title\x07",
    "right to left": "demo\u202e",
    "many parts": "a+" * 400,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
async def test_names_of_any_kind_are_refused_and_never_shown_raw(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pai_backend")
    said = await _login_as(world, name)
    await eventually(lambda: " reason=" in caplog.text, "the end of a login is not logged")
    assert "never" not in said
    assert not {"\x1b", "\x00", "\u202e", "\x07"} & set(caplog.text + said)
    assert "x" * 500 not in caplog.text + said
    assert "name=demo\nroot" not in caplog.text
    assert (await world.ssh("echo in")).stdout == b"in\n"


async def _login_as(world: World, name: str) -> str:
    """Log in with a good key under a name as it is; gives all that was said."""
    said: list[str] = []

    class Client(asyncssh.SSHClient):
        def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
            conn._username = name  # asyncssh's own way to it refuses what this is about

        def auth_banner_received(self, msg: str, lang: str) -> None:
            said.append(msg)

    try:
        async with asyncio.timeout(60):
            async with asyncssh.connect(
                *("127.0.0.1", world.port),
                client_factory=Client,
                username="demo",
                known_hosts=str(world.path / "known_hosts"),
                client_keys=[str(world.key)],
                agent_path=None,
                config=None,
            ) as conn:
                done = await conn.run("echo never")
                said += [str(done.stdout), str(done.stderr)]
    except (asyncssh.Error, OSError) as exc:
        said.append(str(exc))
    return "".join(said).replace("\r\n", "")


async def test_a_packet_with_a_wrong_mac_ends_its_connection(world: World) -> None:
    async with login(world) as good, login(world) as bad:
        assert (await bad.run("echo in")).stdout == "in\n"
        assert bad._transport is not None
        bad._transport.write(os.urandom(512))
        await asyncio.wait_for(bad.wait_closed(), 60)
        assert (await good.run("echo in")).stdout == "in\n"


NO_KEYS = {
    "an exponent of 0": String("ssh-rsa") + MPInt(0) + MPInt((1 << 2047) + 1),
    "a negative modulus": String("ssh-rsa") + MPInt(65537) + MPInt(-(1 << 2047) - 1),
    "a point beside its curve": String("ecdsa-sha2-nistp256") + String("nistp256") + String(b"\x04" + bytes(64)),
    "a point of another curve": String("ecdsa-sha2-nistp256") + String("nistp521") + String(b"\x04" + bytes(64)),
}


@pytest.mark.parametrize("name", NO_KEYS)
async def test_what_is_no_key_is_refused_and_not_a_fault(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers that are no key's are refused as any wrong key is; a stranger writes no tracebacks into the log."""

    data = NO_KEYS[name]
    kind = SSHPacket(data).get_string()
    offers = [data, data]

    class Client(asyncssh.SSHClient):
        def public_key_auth_requested(self) -> asyncssh.SSHKeyPair | None:
            return _Offer(kind, offers.pop()) if offers else None

    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            *("127.0.0.1", world.port),
            **{"username": "demo", "client_factory": Client, "known_hosts": None, "config": None, "agent_path": None},
        )
    assert offers == []
    assert "Traceback" not in caplog.text


async def test_keys_offered_in_vain_are_counted(tmp_path: Path) -> None:
    async with make_world(tmp_path, max_auth_tries=5) as world:
        right, options = world.key, []
        for number in range(8):
            write_key(tmp_path / f"wrong-{number}")
            options += ["-i", str(tmp_path / f"wrong-{number}")]
        world.key = tmp_path / "wrong-0"
        assert "Too many authentication failures" in (await world.ssh("true", options=tuple(options))).stderr
        world.key = right
        assert (await world.ssh("true")).status == 0


@pytest.mark.parametrize("entered", [False, True])
async def test_a_client_that_reads_no_answers_is_not_read_either(
    world: World, entered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what the gateway answers by itself would be kept without a bound, before a login too."""
    monkeypatch.setattr(relay, "UNSENT_BYTES", 1 << 17)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", world.port))
        keys = {"client_keys": [str(world.key)], "known_hosts": None, "agent_path": None}
        async with asyncssh.connect(sock=sock, username="demo", config=None, **keys) as conn:
            if entered:
                await conn.create_process("sleep 60")
            (front,) = [each for each in gc.get_objects() if isinstance(each, JoinedClient) and each.alive]
            assert conn._transport is not None
            assert front._transport is not None
            front._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            conn._transport.pause_reading()
            async with asyncio.timeout(60):
                while not front._not_reading:
                    for _ in range(100):
                        conn.send_packet(NOT_A_MESSAGE)  # RFC 4253 §11.4: answered with "unimplemented"
                    await asyncio.sleep(0)
            conn._transport.resume_reading()
            await eventually(lambda: not front._not_reading, "it is not read again")
            assert (await conn.run("echo in")).stdout == "in\n"


async def test_questions_that_the_task_does_not_answer_are_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "MOST_UNANSWERED", 5)
    async with login(world) as conn:
        await conn.run("true")
        for _ in range(50):
            conn.send_packet(MSG_GLOBAL_REQUEST, String(b"keepalive@openssh.com"), Boolean(True))
        async with asyncio.timeout(60):
            await conn.wait_closed()


async def test_what_a_login_listens_with_counts_as_its_channels_do(tmp_path: Path) -> None:
    async with make_world(tmp_path, max_channels=3) as world, login(world) as conn:
        await conn.run("true")
        held = [await conn.forward_remote_port("", 0, "localhost", 1) for _ in range(3)]
        with pytest.raises(asyncssh.ChannelListenError):
            await conn.forward_remote_port("", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelOpenError, match="3 channels open, the maximum"):
            await conn.run("true")
        held[0].close()
        await held[0].wait_closed()
        assert (await conn.run("echo in")).stdout == "in\n"


async def test_one_user_has_a_bounded_number_of_logins_and_a_login_of_channels(tmp_path: Path) -> None:
    async with make_world(tmp_path, max_logins_per_user=2, max_channels=3) as world:
        async with login(world) as first, login(world) as second:
            outcome = await world.ssh("true")
            assert outcome.status == 255
            assert "You have 2 connections open here" in outcome.stderr
            running = [await first.create_process("cat") for _ in range(3)]
            with pytest.raises(asyncssh.ChannelOpenError, match="3 channels open"):
                await first.create_process("cat")
            running[0].stdin.write_eof()
            await running[0].wait()
            assert (await first.run("echo in")).stdout == "in\n"
            assert (await second.run("echo in")).stdout == "in\n"
        assert (await world.ssh("echo in")).stdout == b"in\n"


async def test_thousands_of_silent_strangers_cost_nothing_that_stays(world: World) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    async with login(world) as good:
        process = await good.create_process("cat", encoding=None)
        await _strangers(world, 200)
        gc.collect()
        before, echoes = psutil.Process().memory_info().rss, 0
        crowd = asyncio.create_task(_strangers(world, MANY))
        while not crowd.done():
            process.stdin.write(b"echo\n")
            async with asyncio.timeout(60):
                assert await process.stdout.readline() == b"echo\n"
            echoes += 1
            await asyncio.wait([crowd], timeout=0.05)
        crowd.result()
        gc.collect()
        assert psutil.Process().memory_info().rss - before < MOST_GROWTH_BYTES
        assert echoes >= 3, "somebody else's echo waits for strangers"
        process.stdin.write_eof()


async def _strangers(world: World, count: int) -> None:
    """Connect, dribble a piece of a greeting and fall silent; hang up when all are there."""
    inside = []
    for number in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(b"SSH-2.0-dribble"[: number % 15])
        inside.append((reader, writer))
        if len(inside) == 200:
            await _hang_up(inside)
    await _hang_up(inside)


async def _hang_up(inside: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]) -> None:
    for _, writer in inside:
        writer.transport.abort()
    inside.clear()
    await asyncio.sleep(0)
