"""Ways around the limits of a login, tried message by message against both kinds of task server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import asyncssh
import psutil
import pytest
import pytest_asyncio
from asyncssh.channel import SSHClientChannel
from asyncssh.constants import MSG_CHANNEL_DATA, MSG_CHANNEL_OPEN
from asyncssh.packet import String, UInt32

from pai_backend.model.rights import EVERYTHING, Limits, limits_of
from pai_backend.store.grants import Share
from tests.support.ssh_world import LIMIT_S, World, eventually, login, make_world, write_key

pytestmark = pytest.mark.asyncio

INIT = String(b"\x01" + UInt32(3))


@pytest_asyncio.fixture(params=["sshd", "asyncssh"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, request.param) as made:
        yield made


def _share(world: World, limits: Limits) -> None:
    """Let bob in, and be bob from here on."""
    world.key = world.path / "bob"
    world.store.register("bob", write_key(world.key))
    world.store.grants.given[:] = [Share(world.job.uid, "bob", limits, datetime.now(UTC), "alice")]
    world.store.written()


class _Heard(asyncssh.SSHClientSession[bytes]):
    """Keeps what the task says on a channel."""

    def __init__(self) -> None:
        self.said = b""

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self.said += data


def _unopened(conn: asyncssh.SSHClientConnection) -> SSHClientChannel[bytes]:
    return SSHClientChannel(conn, asyncio.get_running_loop(), "strict", None, "strict", 1 << 21, 1 << 15)


async def _channel(conn: asyncssh.SSHClientConnection) -> tuple[SSHClientChannel[bytes], _Heard]:
    """A session channel on which nothing was asked for."""
    channel = _unopened(conn)
    heard = _Heard()
    await channel._open(b"session")
    channel._session = heard
    await channel._start_reading()
    return channel, heard


async def _asks(channel: SSHClientChannel[bytes], name: bytes, *args: bytes) -> bool:
    async with asyncio.timeout(LIMIT_S):
        return await channel._make_request(name, *args)


def _send(channel: SSHClientChannel[bytes], data: bytes) -> None:
    channel.send_packet(MSG_CHANNEL_DATA, String(data))


def _answers(heard: _Heard, count: int) -> Callable[[], bool]:
    """Whether so many whole SFTP answers have come."""

    def there() -> bool:
        rest, seen = heard.said, 0
        while len(rest) >= 4 and len(rest) >= 4 + int.from_bytes(rest[:4], "big"):
            rest, seen = rest[4 + int.from_bytes(rest[:4], "big") :], seen + 1
        return seen >= count

    return there


def _make_directory(path: Path, number: int = 1) -> bytes:
    return String(b"\x0e" + UInt32(number) + String(str(path)) + UInt32(0))


@pytest.mark.parametrize("only", [[], ["sftp"], ["sftp-read"], ["exec"]])
async def test_one_program_runs_on_a_channel_whoever_asks(world: World, only: list[str]) -> None:
    _share(world, limits_of(only) if only else EVERYTHING)
    async with login(world) as conn:
        channel, heard = await _channel(conn)
        assert await _asks(channel, b"subsystem", String(b"sftp"))
        for name, args in ((b"subsystem", String(b"sftp")), (b"exec", String(b"echo never")), (b"shell", b"")):
            assert not await _asks(channel, name, args)
        _send(channel, INIT)
        await eventually(_answers(heard, 1), "the first program does not go on")
        assert b"never" not in heard.said


async def test_a_second_subsystem_request_lifts_no_limit(world: World) -> None:
    """The attack: a second request in the middle of a packet began the filter anew, and not the server."""
    _share(world, limits_of(["sftp-read"]))
    made = world.path / "made"
    packet = _make_directory(made, number=0x00000400)
    async with login(world) as conn:
        channel, heard = await _channel(conn)
        assert await _asks(channel, b"subsystem", String(b"sftp"))
        _send(channel, INIT)
        _send(channel, packet[:3])
        assert not await _asks(channel, b"subsystem", String(b"sftp"))
        _send(channel, packet[3:])
        await eventually(_answers(heard, 2), "the server does not answer")
    assert not made.exists()


async def test_data_before_the_subsystem_lifts_no_limit(world: World) -> None:
    """asyncssh's server keeps them for the subsystem, OpenSSH's drops them."""
    _share(world, limits_of(["sftp-read"]))
    made = world.path / "made"
    async with login(world) as conn:
        channel, heard = await _channel(conn)
        _send(channel, INIT + _make_directory(made))
        assert await _asks(channel, b"subsystem", String(b"sftp"))
        _send(channel, INIT + _make_directory(made, number=2))
        await eventually(_answers(heard, 2), "the server does not answer")
    assert not made.exists()


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONSTARTUP", "GIT_SSH", "PERL5OPT", "SHELLOPTS"])
async def test_files_only_run_nothing_by_the_environment(world: World, name: str) -> None:
    ran = world.path / "ran"
    script = world.path / "script"
    script.write_text(f"touch {ran}\n")
    _share(world, limits_of(["sftp"]))
    async with login(world) as conn:
        channel, heard = await _channel(conn)
        assert not await _asks(channel, b"env", String(name), String(str(script)))
        assert await _asks(channel, b"env", String("LC_ALL"), String("C"))
        assert await _asks(channel, b"subsystem", String(b"sftp"))
        _send(channel, INIT)
        await eventually(_answers(heard, 1), "the server does not answer")
    assert not ran.exists()


async def test_a_number_that_is_in_use_ends_the_login(world: World) -> None:
    async with login(world) as conn:
        channel, _ = await _channel(conn)
        number = channel._recv_chan
        assert number is not None
        conn.send_packet(MSG_CHANNEL_OPEN, String(b"session"), UInt32(number), UInt32(1 << 21), UInt32(1 << 15))
        async with asyncio.timeout(LIMIT_S):
            await conn.wait_closed()


@pytest.mark.parametrize("way", ["jumps", "connections", "sockets", "sessions", "refused sessions"])
async def test_channels_are_bounded_whatever_they_are_for_and_come_back(tmp_path: Path, way: str) -> None:
    most = 8
    async with make_world(tmp_path, "sshd", max_channels=most) as world:
        name = "nothing" if way == "refused sessions" else "alice" if way == "jumps" else "demo"
        here = psutil.Process()
        async with login(world, name) as conn:

            async def open_one() -> object:
                if way == "jumps":
                    return await conn.open_connection("demo", 22)
                if way == "connections":
                    return await conn.open_connection("127.0.0.1", world.task_port)
                if way == "sockets":
                    return await conn.open_unix_connection(str(world.path / "socket"))
                return await _channel(conn)

            listening = None
            if way == "sockets":
                listening = await asyncio.start_unix_server(lambda r, w: None, str(world.path / "socket"))
            before = here.num_fds()
            opened = [await open_one() for _ in range(most)]
            for _ in range(3 * most):
                with pytest.raises(asyncssh.ChannelOpenError, match=f"has {most} channels open, which is the most"):
                    await open_one()
            if way == "jumps":
                assert len(world.engine.dials) == most
                assert here.num_fds() - before <= 2 * most  # the loopback engine's two ends are in this process
                for _, writer in opened:  # type: ignore[misc]
                    writer.close()
                await eventually(lambda: here.num_fds() <= before, "descriptors of jumps do not come back")
                await open_one()
            if listening is not None:
                listening.close()


async def test_the_environment_of_who_may_do_everything_passes(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd") as world, login(world) as conn:
        done = await conn.run('echo "$ANY"', env={"ANY": "thing"})
        assert done.stdout == "thing\n"
